#!/usr/bin/env bash
# The binary runs on a CPU of 2008 (SSE4.2, no AVX), and computes the same bytes there.
# usage: nehalem_test.sh RIDGE SHARED_FOLDER
set -euo pipefail
ridge=$1
model=$2/golden/tiny/llama.gguf
command -v qemu-x86_64 > /dev/null || { echo "no qemu-x86_64 here; scripts/setup --test installs it"; exit 77; }
old() { qemu-x86_64 -cpu Nehalem "$ridge" "$@"; }

old --version
old --help > /dev/null
[ -f "$model" ] || { echo "needs ../shared/golden/tiny/llama.gguf"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tokens=1,2,3,5,8,13,21
"$ridge" logits "$model" --tokens $tokens --threads 2 -o "$work/here.npy"
old logits "$model" --tokens $tokens --threads 2 -o "$work/there.npy"
cmp "$work/here.npy" "$work/there.npy"
echo "the same bytes as on this CPU"
