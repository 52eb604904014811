#!/usr/bin/env bash
# Prints the CMake flags, one a line, with which programs on ggml are built for this CPU as their own users would build
# them: for the native one, unless the compiler believes in AMX. Where the operating system or the hypervisor does not
# grant that, a program with it dies of SIGILL, and so did ggml's on a Xeon that does (2026-12-01); on another it read
# prompts more slowly with AMX than without. Then the features are switched on one by one, as /proc/cpuinfo lists them.
# usage: bench/ggml_flags.sh
set -euo pipefail
case "${1:-}" in -h | --help) sed -n '2,6s/^# \{0,1\}//p' "$0"; exit 0 ;; esac
[ $# -eq 0 ] || { echo "usage: ggml_flags.sh" >&2; exit 2; }

granted=" $(grep -m 1 -E '^(flags|Features)' /proc/cpuinfo | cut -d: -f2) "
has() { case "$granted" in *" $1 "*) return 0 ;; *) return 1 ;; esac; }
flags=(-DGGML_NATIVE=ON)
if [ "$(uname -m)" = x86_64 ]; then
  believed=$(g++ -march=native -Q --help=target | awk '/-mamx-tile/ {print $2}')
  if [ "$believed" = "[enabled]" ]; then
    echo "ggml_flags: the compiler believes in AMX, which is left out: explicit features instead" >&2
    flags=(-DGGML_NATIVE=OFF)
    # CMake's name and /proc/cpuinfo's.
    for pair in SSE42:sse4_2 AVX:avx AVX2:avx2 FMA:fma F16C:f16c BMI2:bmi2 AVX_VNNI:avx_vnni AVX512:avx512f \
      AVX512_VBMI:avx512vbmi AVX512_VNNI:avx512_vnni AVX512_BF16:avx512_bf16; do
      if has "${pair#*:}"; then flags+=("-DGGML_${pair%%:*}=ON"); else flags+=("-DGGML_${pair%%:*}=OFF"); fi
    done
  fi
fi
printf '%s\n' "${flags[@]}"
