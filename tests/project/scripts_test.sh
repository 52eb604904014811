#!/usr/bin/env bash
# The scripts parse, are executable, and refuse what they do not know.
set -euo pipefail
root="$(dirname "$(readlink -f "$0")")/../.."
fail() { echo "scripts_test: $*" >&2; exit 1; }

for name in scripts/setup scripts/build scripts/demo scripts/test scripts/format scripts/sanitize scripts/check_layers .ci/run; do
  script="$root/$name"
  [ -x "$script" ] || fail "$name is not executable"
  bash -n "$script" || fail "$name does not parse"
  grep -q '^set -euo pipefail$' "$script" || fail "$name does not stop at errors"
done
for name in setup format sanitize; do
  if message=$("$root/scripts/$name" --nonsense 2>&1 < /dev/null); then fail "$name takes --nonsense"; fi
  case $message in *usage:*) ;; *) fail "$name --nonsense gives no usage line: $message" ;; esac
done
# Every tool says what it is for when asked, and does nothing else.
for script in "$root"/scripts/* "$root"/bench/*.sh "$root"/bench/*.py; do
  [ -f "$script" ] || continue
  help=$("$script" --help 2>&1 < /dev/null) || fail "${script#"$root"/} --help fails: $help"
  case $help in *usage:*) ;; *) fail "${script#"$root"/} --help gives no usage line: $help" ;; esac
done

# The list of skipped tests, with reasons as gtest and scripts print them.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat > "$work/tests.xml" << 'XML'
<testsuite><testcase name="a" status="notrun"><skipped message="x"/><system-out>[ RUN ] a
a_test.cpp:7: Skipped
needs ../shared/golden: absent

[  SKIPPED ] a</system-out></testcase>
<testcase name="b" status="run"><system-out>Skipped is what this one only says</system-out></testcase>
<testcase name="c" status="notrun"><skipped message="x"/><system-out>no such tool here</system-out></testcase></testsuite>
XML
list=$(python3 "$root/scripts/skipped_tests.py" "$work/tests.xml")
expected=$'\nSkipped: 2 tests\n  needs ../shared/golden: absent\n    a\n  no such tool here\n    c'
[ "$list" = "$expected" ] || fail "the list of skipped tests is: $list"
if python3 "$root/scripts/skipped_tests.py" "$work/tests.xml" --forbid "needs ../shared" > /dev/null 2>&1; then
  fail "a forbidden reason was let through"
fi
python3 "$root/scripts/skipped_tests.py" "$work/tests.xml" --forbid "other" > /dev/null
