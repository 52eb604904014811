#!/usr/bin/env python3
"""Do Ridge's replacement policies hit what libCacheSim's do on the same trace?

  bench/against_libcachesim.py VISITS.json… [--shares 0.1,0.25,0.5] [--ridge PROGRAM] [-o results]

Each trace of visits (`ridge run --record`, `ridge distill --record`) is written as oracleGeneral by `ridge sim --export`, replayed by
libCacheSim (PyPI: libcachesim), and by `ridge sim --memory` with the same capacity, a share of the bytes of all blocks. The table
shows hits in percent of the bytes asked for, Ridge's and libCacheSim's. LRU, FIFO, CLOCK, LFU and SIEVE are one algorithm everywhere and must
agree to a hit where all blocks have one size. SLRU has two segments here and four there, and queues that are a tenth of a few blocks round differently
(S3-FIFO, ARC): shown only. Belady's must be no less than libCacheSim's, since a newcomer may pass by here.

Prints Markdown; exit code 1 where they differ by more.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import libcachesim
except ImportError:
    libcachesim = None

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXACT = ("lru", "fifo", "clock", "lfu", "sieve")
THEIRS = {"lru": "LRU", "fifo": "FIFO", "clock": "Clock", "lfu": "LFU", "slru": "SLRU", "arc": "ARC", "sieve": "Sieve", "s3-fifo": "S3FIFO",
          "belady": "Belady"}


def ridge(o, *words):
    done = subprocess.run([str(o.ridge), *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"against_libcachesim: ridge {' '.join(map(str, words))}: {done.stderr.strip()}")
    return done.stdout


def theirs(trace, capacity, policy):
    reader = libcachesim.TraceReader(str(trace), libcachesim.TraceType.ORACLE_GENERAL_TRACE)
    _, bytes_missed = getattr(libcachesim, THEIRS[policy])(cache_size=capacity).process_trace(reader)
    return 1 - bytes_missed


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("visits", nargs="+")
    p.add_argument("--shares", default="0.1,0.25,0.5")
    p.add_argument("--ridge", default=ROOT / "build/release/bin/ridge")
    p.add_argument("-o", "--output", help="also write NAME.md")
    o = p.parse_args()
    if libcachesim is None:
        sys.exit("against_libcachesim: needs libcachesim of PyPI: pip install libcachesim")
    lines = ["| trace | cache | " + " | ".join(THEIRS) + " |", "|---|---|" + "---|" * len(THEIRS)]
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        for visits in o.visits:
            blocks = json.loads(pathlib.Path(visits).read_text())["blocks"]
            exported = pathlib.Path(folder) / "trace.oracleGeneral"
            ridge(o, "sim", visits, "--export", exported)
            one_size = len({b["memory_bytes"] for b in blocks}) == 1
            for share in map(float, o.shares.split(",")):
                capacity = int(share * sum(b["memory_bytes"] for b in blocks))
                report = json.loads(ridge(o, "sim", visits, "--memory", f"{capacity}", "--policy", "all", "--json", "--quiet"))
                ours = {r["policy"]: r["hit_bytes_ratio"] for r in report["rows"]}
                cells = []
                for policy in THEIRS:
                    a, b = ours[policy], theirs(exported, capacity, policy)
                    cells.append(f"{100 * a:.2f} / {100 * b:.2f}")
                    far = (policy in EXACT and one_size and abs(a - b) > 1e-4) or (policy == "belady" and a < b - 1e-4)
                    if far:
                        failures.append(f"{pathlib.Path(visits).name} at {share:.0%}, {policy}: {100 * a:.2f} and {100 * b:.2f} %")
                lines.append(f"| {pathlib.Path(visits).stem} | {share:.0%} | " + " | ".join(cells) + " |")
    text = "\n".join(lines) + "\n"
    print(text, end="")
    if o.output:
        pathlib.Path(o.output + ".md").write_text(text)
    for failure in failures:
        print("differs: " + failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
