#!/usr/bin/env bash
# What is installed works elsewhere: the program starts, and another project finds the library and builds with it.
# usage: install_test.sh BUILD_FOLDER
set -euo pipefail
build=$1
root="$(dirname "$(readlink -f "$0")")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/usr" > /dev/null
"$work/usr/bin/ridge" --version

[ -f "$work/usr/include/ridge/ridge.h" ] || { echo "install_test: the public header was not installed"; exit 1; }
cmake -S "$root/tests/project/consumer" -B "$work/consumer" -G Ninja -DCMAKE_PREFIX_PATH="$work/usr" \
  -DCMAKE_BUILD_TYPE=Release > "$work/log" 2>&1 || { cat "$work/log"; exit 1; }
cmake --build "$work/consumer" > "$work/log" 2>&1 || { cat "$work/log"; exit 1; }
"$work/consumer/consumer"
