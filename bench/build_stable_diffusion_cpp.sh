#!/usr/bin/env bash
# Builds the comparator of `ridge image`: stable-diffusion.cpp as vendored in the source package of
# stable-diffusion-cpp-python (about 15 minutes on 2 cores).
# usage: bench/build_stable_diffusion_cpp.sh DIR        prints DIR/bin, which then holds sd-cli
#
# Built for this CPU, as its own users would: with -march=native, unless the compiler believes in AMX and the operating
# system or the hypervisor does not grant it; a program with such instructions dies of SIGILL. Then the features are
# switched on one by one, as /proc/cpuinfo lists them. No GPU back end, no server, no WebP or WebM.
set -euo pipefail
case "${1:-}" in -h | --help) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 0 ;; esac
version=0.4.7
[ $# -eq 1 ] || { echo "usage: build_stable_diffusion_cpp.sh DIR" >&2; exit 2; }
dir=$(mkdir -p "$1" && cd "$1" && pwd)
if [ -x "$dir/bin/sd-cli" ]; then
  echo "$dir/bin"
  exit 0
fi

archive="stable_diffusion_cpp_python-$version.tar.gz"
if [ ! -e "$dir/$archive" ]; then
  python3 -m venv "$dir/venv" >&2
  "$dir/venv/bin/pip" install -q scikit-build-core >&2
  (cd "$dir" && "$dir/venv/bin/pip" download -q --no-deps --no-binary :all: --no-build-isolation \
    "stable-diffusion-cpp-python==$version" >&2)
fi
mkdir -p "$dir/src"
tar xzf "$dir/$archive" -C "$dir/src" --strip-components=1

printed=$("$(dirname "$(readlink -f "$0")")/ggml_flags.sh")
mapfile -t flags <<< "$printed"
cmake -S "$dir/src/vendor/stable-diffusion.cpp" -B "$dir/build" -DCMAKE_BUILD_TYPE=Release "${flags[@]}" \
  -DSD_BUILD_EXAMPLES=ON -DSD_WEBP=OFF -DSD_WEBM=OFF >&2
nice cmake --build "$dir/build" -j"$(nproc)" --target sd-cli >&2
"$dir/build/bin/sd-cli" --help > /dev/null || { echo "build_stable_diffusion_cpp: what was built does not run here" >&2; exit 1; }
ln -sfn "$dir/build/bin" "$dir/bin"
echo "$dir/bin"
