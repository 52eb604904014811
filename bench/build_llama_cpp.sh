#!/usr/bin/env bash
# Builds the comparator: llama.cpp as vendored in the source package of llama-cpp-python (about 10 minutes on 2 cores).
# usage: bench/build_llama_cpp.sh DIR        prints DIR/bin, which then holds llama-bench
#
# Built for this CPU, as its own users would: with -march=native, unless the compiler believes in instructions that the
# operating system or the hypervisor does not grant (AMX above all); a program with those dies of SIGILL. Then the
# features are switched on one by one, as /proc/cpuinfo lists them.
set -euo pipefail
case "${1:-}" in -h | --help) sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 0 ;; esac
version=0.3.36
[ $# -eq 1 ] || { echo "usage: build_llama_cpp.sh DIR" >&2; exit 2; }
dir=$(mkdir -p "$1" && cd "$1" && pwd)
if [ -x "$dir/bin/llama-bench" ]; then
  echo "$dir/bin"
  exit 0
fi

python3 -m venv "$dir/venv" >&2
"$dir/venv/bin/pip" install -q scikit-build-core >&2
if ! compgen -G "$dir/llama_cpp_python-$version.tar.gz" > /dev/null; then
  (cd "$dir" && "$dir/venv/bin/pip" download -q --no-deps --no-binary :all: --no-build-isolation "llama-cpp-python==$version" >&2)
fi
mkdir -p "$dir/src"
tar xzf "$dir/llama_cpp_python-$version.tar.gz" -C "$dir/src" --strip-components=1

printed=$("$(dirname "$(readlink -f "$0")")/ggml_flags.sh")
mapfile -t flags <<< "$printed"
cmake -S "$dir/src/vendor/llama.cpp" -B "$dir/build" -DCMAKE_BUILD_TYPE=Release "${flags[@]}" -DLLAMA_CURL=OFF \
  -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_TESTS=OFF >&2
cmake --build "$dir/build" -j"$(nproc)" --target llama-bench >&2
"$dir/build/bin/llama-bench" --help > /dev/null || { echo "build_llama_cpp: what was built does not run here" >&2; exit 1; }
ln -sfn "$dir/build/bin" "$dir/bin"
echo "$dir/bin"
