"""`ridge image --lifecycle load-run-release` and `--stats`: the same picture, and what each part of a step took."""
import json
import os

from harness import T, check, fails, main, run

MINI = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../demo/anima-mini")


def read(path):
    with open(path, "rb") as f:
        return f.read()


def test_lifecycle():
    out = os.path.join(T, "out.png")
    way = ["image", "--bundle", MINI, "-p", "red apple on a blue background", "--size", "48x32", "--steps", "3",
           "--seed", "1", "-o", out]
    r = run(*way, "--stats", "--json")
    check(r.returncode == 0 and "execute" in r.stderr, f"--stats: {r.returncode} {r.stderr}")
    picture, streamed = read(out), json.loads(r.stdout)["passes"]
    r = run(*way, "--lifecycle", "load-run-release", "--stats", "--json")
    check(r.returncode == 0 and read(out) == picture, f"--lifecycle gives other bytes: {r.stderr}")
    alone = json.loads(r.stdout)["passes"]
    for passes in (streamed, alone):
        check(len(passes) == 3 and all(set(p) == {"self", "cross", "ffn", "other"} for p in passes), f"passes {passes}")
        check(all(k["execute"] > 0 for p in passes for k in p.values()), f"execution of {passes}")
    for p in alone:
        check(all(k[w] > 0 for k in p.values() for w in ("load", "init", "release")), f"a lifecycle without times: {p}")
    # All is pinned here: nothing is loaded while it runs.
    check(all(k["init"] == k["release"] == 0 for p in streamed for k in p.values()), f"of pinned blocks: {streamed}")
    rows = [line.split() for line in r.stderr.splitlines()]
    for name in ("self", "cross", "ffn", "all"):
        check(any(row[:1] == [name] and len(row) == 6 for row in rows), f"--stats has no row {name}: {r.stderr}")
    check(sum(row[:1] == ["step"] for row in rows) == 3, f"--stats has no row for each step: {r.stderr}")
    r = run(*way, "--lifecycle", "load-run-release", "--spectrum", "hidden,warmup=1", "--threads", "1")
    check(r.returncode == 0, f"--lifecycle with --spectrum: {r.stderr}")
    fails(2, [*way, "--lifecycle", "lru"], "load-run-release")
    fails(4, [*way, "--lifecycle", "load-run-release", "--memory", "3M"], "does not fit")


main(test_lifecycle)
