#!/usr/bin/env bash
# The Debian package can be built and holds what it should.
# usage: package_test.sh BUILD_FOLDER
set -euo pipefail
build=$1
command -v dpkg-shlibdeps > /dev/null || { echo "no dpkg-shlibdeps here; scripts/setup --test installs it"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cpack --config "$build/CPackConfig.cmake" -G DEB -B "$work" > "$work/log" 2>&1 || { cat "$work/log"; exit 1; }

package=("$work"/*.deb)
[ -f "${package[0]}" ] || { echo "no package was written"; cat "$work/log"; exit 1; }
list=$(dpkg-deb --contents "${package[0]}")
fields=$(dpkg-deb --info "${package[0]}")
echo "$fields"
echo "$list"
for path in ./usr/bin/ridge ./usr/share/man/man1/ridge.1 ./usr/share/bash-completion/completions/ridge \
  ./usr/share/zsh/vendor-completions/_ridge ./usr/share/fish/vendor_completions.d/ridge.fish ./usr/share/doc/ridge/copyright; do
  grep -q " $path\$" <<< "$list" || { echo "package_test: $path is not in the package"; exit 1; }
done
# Found by dpkg-shlibdeps, not written by hand.
grep -q 'Depends: .*libc6' <<< "$fields" || { echo "package_test: the package depends on nothing"; exit 1; }
grep -q 'Depends: .*libfmt9' <<< "$fields" || { echo "package_test: libfmt9 is not among the dependencies"; exit 1; }
