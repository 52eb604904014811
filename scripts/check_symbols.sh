#!/bin/sh
# Fails if an object file that was compiled with ISA flags could lend its code to other files. An inline function or a
# template of a shared header is a weak symbol in every object that has it, and the linker keeps one copy: if that is the
# AVX-512 one, an old CPU dies in code that looks portable. Static constructors are as bad: they run on every CPU.
#
# usage: scripts/check_symbols.sh BUILD_FOLDER
set -eu
case "${1:-}" in -h | --help) sed -n '2,6s/^# \{0,1\}//p' "$0"; exit 0 ;; esac
build=${1:?usage: scripts/check_symbols.sh BUILD_FOLDER}
bad=0
found=0
for folder in "$build"/src/CMakeFiles/ridge_kernels_*.dir; do
  [ -d "$folder" ] || continue
  isa=${folder##*/ridge_kernels_}
  isa=${isa%.dir}
  for object in $(find "$folder" -name '*.o'); do
    found=$((found + 1))
    # Defined symbols that other objects can see: strong ones must be in ridge::<isa>, weak (V W v w) and unique (u) ones
    # must not be there at all, and neither must constructors.
    wrong=$(nm -C --defined-only "$object" | awk -v space="ridge::$isa::" '
      { type = $2; name = $0; sub(/^[^ ]* [^ ] /, "", name) }
      type ~ /[VvWwu]/ && index(name, space) != 1 && name !~ /^DW\.ref\./ { print "  weak: " name }
      type ~ /[A-TX-Z]/ && index(name, space) != 1 { print "  global: " name }
      name ~ /^_GLOBAL__/ { print "  constructor: " name }')
    if [ -n "$wrong" ]; then
      echo "$object:" >&2
      echo "$wrong" >&2
      bad=1
    fi
  done
done
if [ "$found" -eq 0 ]; then
  echo "$build: no ISA objects found under src/CMakeFiles/ridge_kernels_*.dir; build target ridge_kernels first" >&2
  exit 1
fi
[ "$bad" -eq 0 ] && echo "$found ISA objects define nothing outside their namespaces"
exit "$bad"
