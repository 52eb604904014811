"""What the end-to-end tests share: run the program as people do, and check what they see.

Not a test itself: each group is a file beside this one, a CTest test cli.GROUP (CMakeLists.txt).

    from harness import check, main, run, tiny_file

    def test_version():
        check("kernels:" in run("--version").stdout, "--version names no kernels")

    main(test_version)

usage of a group: GROUP.py --ridge PROGRAM [--example PROGRAM] [--shared FOLDER]; exit code 1: failed, 77: skipped.
"""
import argparse
import atexit
import os
import shutil
import subprocess
import sys
import tempfile

import gguf_files

parser = argparse.ArgumentParser()
parser.add_argument("--ridge", required=True)
parser.add_argument("--example")
parser.add_argument("--shared", default="")
A = parser.parse_args()
T = tempfile.mkdtemp(prefix="ridge-cli-")  # a folder of this group, removed at its end
atexit.register(shutil.rmtree, T, ignore_errors=True)

failures = []


class Skip(Exception):
    pass


def check(condition, what):
    if not condition:
        failures.append(what)


def run(*words, stdin=None, env=None, text=True, **more):
    full = dict(os.environ, **(env or {}))
    # A random model writes bytes that are no text.
    words = [w if isinstance(w, bytes) else str(w) for w in words]
    return subprocess.run([A.ridge, *words], input=stdin, capture_output=True, text=text,
                          errors="replace" if text else None, env=full, timeout=600,
                          **({"stdin": subprocess.DEVNULL} if stdin is None else {}), **more)


def fails(code, words, part, stdin=None, **more):
    """The command ends with this code and says one line that holds `part`."""
    r = run(*words, stdin=stdin, **more)
    if isinstance(r.stderr, bytes):
        r.stdout, r.stderr = r.stdout.decode(), r.stderr.decode()
    said = [line for line in r.stderr.splitlines() if line.strip()]
    check(r.returncode == code, f"{words}: exit {r.returncode}, expected {code}: {r.stderr[-300:]}")
    check(part in r.stderr, f"{words}: says {r.stderr.strip()!r}, expected {part!r}")
    check(r.returncode == 4 or len(said) == 1, f"{words}: says {len(said)} lines: {r.stderr!r}")
    check(r.stdout == "" or r.returncode == 5, f"{words}: wrote to stdout: {r.stdout[:100]!r}")


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)
    return path


def tiny_file(**options):
    return write(os.path.join(T, "tiny.gguf"), gguf_files.tiny(**options).bytes())


def demo_model(file):
    folder = os.environ.get("RIDGE_MODELS_DIR") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache"), "ridge")
    path = os.path.join(folder, file)
    if not os.path.exists(path):
        raise Skip(f"needs the demo models (scripts/test fetches them): {path}")
    return path


def read_logits(path):
    return open(path, "rb").read()


def main(test):
    skipped = None
    try:
        test()
    except Skip as reason:
        skipped = str(reason)
    finally:  # what ends a test early is often the second failure
        for failure in failures:
            print("FAILED", failure)
    if failures:
        sys.exit(1)
    if skipped:
        print(skipped)
        sys.exit(77)
