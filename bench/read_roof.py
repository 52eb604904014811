#!/usr/bin/env python3
"""Is the probe's read roof a roof? It against a plain loop in the manner of STREAM, compiled with -O3 -march=native.

  bench/read_roof.py [--rounds 3] [--ridge build/release/bin/ridge] [--cxx c++]

Rounds of `ridge probe --quick` and the plain loop (bench/plain_read.cpp) in turn, in huge pages, at every footprint of the
quick probe, with one thread and with all; of each the best of the rounds. Prints Markdown.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def output(words):
    run = subprocess.run([str(w) for w in words], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"read_roof: {' '.join(map(str, words))}: exit {run.returncode}: {run.stderr.strip()}")
    return run.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ridge", default=str(ROOT / "build/release/bin/ridge"))
    parser.add_argument("--cxx", default="c++")
    args = parser.parse_args()
    roof, plain = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        loop, kept = pathlib.Path(folder) / "plain_read", pathlib.Path(folder) / "machine.toml"
        output([args.cxx, "-std=c++17", "-O3", "-march=native", "-pthread", ROOT / "bench/plain_read.cpp", "-o", loop])
        for _ in range(args.rounds):
            probe = json.loads(output([args.ridge, "probe", "--quick", "--no-storage", "--json", "-o", kept]))
            for r in probe["reads"]:
                key = r["footprint_bytes"], r["threads"]
                roof[key] = max(roof.get(key, 0), r["gb_per_s"]["high"])
            for footprint, threads in roof:
                rate = float(output([loop, footprint, threads, 5]))
                plain[footprint, threads] = max(plain.get((footprint, threads), 0), rate)
    print("| footprint | threads | probe, GB/s | plain loop | probe by plain |\n|---|---|---|---|---|")
    for (footprint, threads), rate in roof.items():
        other = plain[footprint, threads]
        print(f"| {footprint >> 10} KiB | {threads} | {rate:.1f} | {other:.1f} | {rate / other:.2f} |")


if __name__ == "__main__":
    main()
