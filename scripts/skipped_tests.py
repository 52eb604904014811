#!/usr/bin/env python3
"""Lists the skipped tests of a CTest run with their reasons.

usage: skipped_tests.py JUNIT_FILE [--forbid TEXT]     --forbid: fail if a reason begins with TEXT (repeatable)
"""
import argparse
import re
import sys
import xml.etree.ElementTree as ElementTree


def reason(output):
    """The message of GTEST_SKIP, which follows the line 'file:line: Skipped'; else the last line of a script."""
    match = re.search(r": Skipped\s*\n(.+)", output)
    if match:
        return match.group(1).strip()
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1] if lines else "no reason given"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("junit_file")
    parser.add_argument("--forbid", metavar="TEXT", action="append", default=[])
    options = parser.parse_args()
    try:
        cases = ElementTree.parse(options.junit_file).getroot().iter("testcase")
    except (OSError, ElementTree.ParseError) as error:
        sys.exit(f"skipped_tests: {options.junit_file}: {error}")
    reasons = {}
    for case in cases:
        if case.find("skipped") is None and case.get("status") not in ("notrun", "disabled"):
            continue
        reasons.setdefault(reason(case.findtext("system-out") or ""), []).append(case.get("name"))
    if not reasons:
        print("\nNo test was skipped.")
        return
    print(f"\nSkipped: {sum(len(names) for names in reasons.values())} tests")
    for why, names in sorted(reasons.items()):
        print(f"  {why}")
        for name in sorted(names):
            print(f"    {name}")
    print()
    forbidden = [why for why in reasons if why.startswith(tuple(options.forbid))]
    if forbidden:
        sys.exit(f"Failed: what these tests need is here, and still they were skipped: {'; '.join(sorted(forbidden))}")


if __name__ == "__main__":
    main()
