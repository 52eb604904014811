#!/usr/bin/env bash
# Cross-builds for 64-bit Arm and runs it under qemu: the kernels and the tensors on a CPU with everything and on one
# without dot products; the program on both and on one between them, against the bytes of this machine's build.
# usage: arm64_test.sh RIDGE SHARED_FOLDER [BUILD_FOLDER]      default: build/arm64
set -euo pipefail
ridge=$1
shared=$2
cd "$(dirname "$(readlink -f "$0")")/../.."
missing() { echo "no $1 here; scripts/setup --arm64 installs it"; exit 77; }
command -v aarch64-linux-gnu-g++ > /dev/null || missing aarch64-linux-gnu-g++
command -v qemu-aarch64 > /dev/null || missing qemu-aarch64
for library in libgtest.a libsqlite3.so; do
  [ -e /usr/lib/aarch64-linux-gnu/$library ] || missing "arm64 $library"
done

build=${3:-build/arm64}
cmake --preset arm64 -B "$build" > /dev/null
cmake --build "$build" --target ridge test_base test_kernels test_tensor
scripts/check_symbols.sh "$build"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
arm() { qemu-aarch64 -cpu "$1" "$build/bin/ridge" "${@:2}"; }
# A share of the tests for each core: qemu's own threads keep one busy.
tests() {
  local shards shard jobs=()
  shards=$(nproc)
  for ((shard = 0; shard < shards; ++shard)); do
    GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$shard qemu-aarch64 -cpu "$1" "$build/tests/$2" --gtest_brief=1 "${@:3}" &
    jobs+=($!)
  done
  for job in "${jobs[@]}"; do wait "$job"; done
}

# The list has every variant, so `max` tests them all; a Cortex-A53 proves that the plain ones need no more than it has.
# Left out: columns beyond 131,072, which are about side buffers that NEON kernels do not have, and what compares scalar
# code with doubles and long doubles, which has been done on this machine.
# Without death tests: under qemu a program that aborts dies in another way than the one they look for.
tests max test_base --gtest_filter='ThreadPool*-*DeathTest*'
tests max test_tensor
tests max test_kernels --gtest_filter='-*VeryManyColumns*:*ScalarIsClose*:ScalarVector*:Math.*'
some='*Q8EqualsScalar/Q4_0:*Q8EqualsScalar/Q6_K:*Q8EqualsScalar/Q8_0:*Q8EqualsScalar/IQ2_XS:*Q8EqualsScalar/TQ1_0'
tests cortex-a53 test_kernels --gtest_filter="$some:*Vector*:KvStore.*:Soften.*:MergeChunk.*"

for cpu in max cortex-a76 cortex-a53; do arm $cpu --version; done
arm max --version | grep -q 'kernels: neon)' || { echo "NEON kernels are not chosen"; exit 1; }

# same MODEL TOKENS OPTIONS CPU…: logits equal those of this machine. Options are words in one argument.
same() {
  local options
  read -ra options <<< "--tokens $2 --threads 1 $3"
  "$ridge" logits "$1" "${options[@]}" -o "$work/here.npy" 2> /dev/null
  for cpu in "${@:4}"; do
    arm "$cpu" logits "$1" "${options[@]}" -o "$work/there.npy" 2> /dev/null
    cmp "$work/here.npy" "$work/there.npy"
    echo "$(basename "$1") $3: the same bytes on $cpu"
  done
}
[ -d "$shared/golden/tiny" ] || { echo "needs ../shared/golden/tiny"; exit 77; }
tiny=$shared/golden/tiny
for model in "$tiny"/{llama,type-*}.gguf; do same "$model" 1,2,3,5,8 "" max cortex-a76 cortex-a53; done
for model in "$tiny"/{gemma3,gpt-oss,llama-experts,deepseek2-absorbed}.gguf; do same "$model" 1,2,3,5,8 "" max; done
for type in bf16 q8_0; do same "$tiny/llama.gguf" 1,2,3,5,8 "--kv-type $type" max; done

model=$("$ridge" models get smollm2-135m 2> /dev/null) || { echo "needs the demo models"; exit 77; }
same "$model" 504,3575,282,4649,314 "" max cortex-a53
ask=(run "$model" --raw -p "The capital of France is" --temp 0 -n 6 --context 256 --threads 1)
"$ridge" "${ask[@]}" > "$work/here.txt" 2> /dev/null
arm max "${ask[@]}" > "$work/there.txt" 2> /dev/null
cmp "$work/here.txt" "$work/there.txt"
echo "SmolLM2 answers the same: $(cat "$work/there.txt")"
