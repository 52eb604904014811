#!/usr/bin/env python3
"""The layers of src/: what each folder includes, against what it may include; and no file grows past its limit.

usage: layers_test.py [SRC_FOLDER] [--self-test]
Prints every offence as file:line: message. docs/development.md explains the layers.
"""
import pathlib
import re
import sys
import tempfile

# What a listed folder may include, its includer may too.
MAY_INCLUDE = {
    "base": [],
    "machine": ["base"],
    "tensor": ["base"],
    "program": ["tensor"],
    "kernels": ["tensor", "machine"],
    "format": ["tensor"],
    "text": ["format"],
    "memory": ["program", "format", "machine"],
    "model": ["kernels", "memory", "program", "format"],
    "plan": ["program", "memory", "machine"],
    "engine": ["plan", "model", "text"],
    "sim": ["plan", "memory"],
    "analyze": ["plan", "engine", "machine"],
    "report": ["analyze", "sim"],
    "api": ["engine"],
    "distill": ["engine", "sim"],
    "claims": ["report", "distill"],
    "cli": ["api", "claims"],
}
MOST_LINES = 600
SOURCES = (".cpp", ".h", ".inc")
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')


def permitted(layer):
    """All layers that `layer` may include, itself among them."""
    found, waiting = set(), [layer]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += MAY_INCLUDE[name]
    return found


def offences_of_line(src, layer, line):
    match = INCLUDE.match(line)
    if not match:
        return
    quote, target = match.groups()
    first = target.split("/")[0]
    if quote == "<":
        if first in MAY_INCLUDE and (src / target).is_file():
            yield f'<{target}> is our own file: write "{target}"'
        return
    if first == "ridge":  # the public header, include/ridge/
        return
    if first not in MAY_INCLUDE or "/" not in target:
        yield f'"{target}" does not begin with a layer: includes are relative to src/'
        return
    if not (src / target).is_file():
        yield f'"{target}" does not exist'
    if first not in permitted(layer):
        allowed = ", ".join(sorted(permitted(layer) - {layer})) or "nothing"
        yield f'{layer}/ may not include {first}/ ("{target}"); it may include {allowed}'


def offences(src):
    for path in sorted(p for p in src.rglob("*") if p.suffix in SOURCES):
        name = path.relative_to(src)
        layer = name.parts[0]
        if layer not in MAY_INCLUDE:
            yield f"src/{name}:1: '{layer}' is no layer; add it to the table in tests/layers_test.py"
            continue
        lines = path.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines, 1):
            for offence in offences_of_line(src, layer, line):
                yield f"src/{name}:{number}: {offence}"
        if len(lines) > MOST_LINES:
            yield f"src/{name}:{MOST_LINES + 1}: {len(lines)} lines, more than {MOST_LINES}: it wants a second idea"


def self_test():
    """The checker finds what it is for, and no more."""
    with tempfile.TemporaryDirectory() as folder:
        src = pathlib.Path(folder)
        files = {
            "base/a.h": "#pragma once\n#include <memory>\n",
            "memory/m.h": "",
            "tensor/t.h": '#include "base/a.h"\n',
            "kernels/avx2/k.cpp": '#include "base/a.h"\n#include "tensor/t.h"\n',
            "base/b.cpp": '#include "tensor/t.h"\n',
            "base/c.cpp": '#include "a.h"\n#include <base/a.h>\n#  include "base/gone.h"\n',
            "base/long.cpp": "//\n" * (MOST_LINES + 1),
            "other/x.cpp": "",
        }
        for name, text in files.items():
            (src / name).parent.mkdir(parents=True, exist_ok=True)
            (src / name).write_text(text)
        found = [line.split(": ")[0] for line in offences(src)]
    expected = ["src/base/b.cpp:1", "src/base/c.cpp:1", "src/base/c.cpp:2", "src/base/c.cpp:3",
                f"src/base/long.cpp:{MOST_LINES + 1}", "src/other/x.cpp:1"]
    if found != expected:
        sys.exit(f"self-test: found {found}, expected {expected}")


def main():
    arguments = sys.argv[1:]
    if "--self-test" in arguments:
        self_test()
        arguments.remove("--self-test")
    src = pathlib.Path(arguments[0]) if arguments else pathlib.Path(__file__).resolve().parent.parent / "src"
    found = list(offences(src))
    for line in found:
        print(line)
    if found:
        sys.exit(f"{len(found)} offences against the layers")
    print("the layers hold")


if __name__ == "__main__":
    main()
