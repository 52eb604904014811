#!/usr/bin/env python3
"""Do probes agree? N probes in turn, and for every figure how far they lie apart.

  bench/probe_repeat.py [-n 5] [--quick] [--ridge build/release/bin/ridge] [--all]

A probe says which of its figures have not settled (their quartiles are more than 5 % apart), and whether others used the
machine. The table counts, by kind of figure, how many settled in two probes or more, and how far apart the medians of
those lie (largest by smallest, less one): the median figure, nine of ten, the worst. Once for all probes, once for those
that were not contended. --all lists every figure. Prints Markdown.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def figures(probe):
    """(kind, name) → the figure, of everything that a probe settles."""
    found = {}
    for r in probe["reads"]:
        pages = "huge" if r["huge_pages"] else "4 KiB"
        found["reads", f"{r['footprint_bytes']} B, {r['threads']} threads, {pages}"] = r["gb_per_s"]
    for s in probe["streams"]:
        found["copies", f"{s['kind']}, {s['footprint_bytes']} B, {s['threads']} threads"] = s["gb_per_s"]
    for l in probe["latencies"]:
        found["latencies", f"{l['footprint_bytes']} B"] = l["ns"]
    for p in probe["peaks"]:
        found["peaks", f"{p['type']} {p['isa']}, {p['threads']} threads"] = p["gops"]
    for f in probe["formats"]:
        found["formats", f["type"]] = f["gb_per_s"]
    return found


def spreads(probes):
    """(kind, name) → how far the medians lie apart, where two probes or more have settled."""
    apart = {}
    for key in probes[0] if probes else []:
        values = [p[key]["median"] for p in probes if key in p and p[key]["settled"]]
        if len(values) >= 2:
            apart[key] = max(values) / min(values) - 1
    return apart


def table(title, probes):
    print(f"\n{title}: {len(probes)} probes\n\n| figures | of | settled | median | nine of ten | worst | within 5 % |")
    print("|---|---|---|---|---|---|---|")
    apart = spreads(probes)
    for kind in dict.fromkeys(k for k, _ in (probes[0] if probes else [])):
        of = sum(1 for k, _ in probes[0] if k == kind)
        values = sorted(v for (k, _), v in apart.items() if k == kind)
        if not values:
            print(f"| {kind} | {of} | 0 | | | | |")
            continue
        ninth = values[min(len(values) - 1, int(0.9 * len(values)))]
        within = sum(1 for v in values if v <= 0.05)
        print(f"| {kind} | {of} | {len(values)} | {statistics.median(values):.1%} | {ninth:.1%} | {values[-1]:.1%} "
              f"| {within} |")


def measure(args, kept, probes, calm):
    for i in range(args.n):
        words = [args.ridge, "probe", "--no-storage", "--json", "-o", str(kept)] + (["--quick"] if args.quick else [])
        run = subprocess.run(words, capture_output=True, text=True)
        if run.returncode != 0:
            sys.exit(f"probe_repeat: {' '.join(words)}: {run.stderr.strip()}")
        probe = json.loads(run.stdout)
        probes.append(figures(probe))
        if not probe["contended"]:
            calm.append(probes[-1])
        unsettled = sum(1 for f in probes[-1].values() if not f["settled"])
        print(f"- probe {i + 1}: {unsettled} of {len(probes[-1])} figures unsettled; {probe['contention'] or 'quiet'}",
              flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=5, help="probes")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--ridge", default=str(ROOT / "build/release/bin/ridge"))
    parser.add_argument("--all", action="store_true", help="list every figure")
    args = parser.parse_args()
    if args.n < 2:
        sys.exit(f"probe_repeat: {args.n} probes cannot be compared: give -n 2 or more")
    probes, calm = [], []
    with tempfile.TemporaryDirectory() as folder:
        measure(args, pathlib.Path(folder) / "machine.toml", probes, calm)
    table("All", probes)
    table("Not contended", calm)
    if args.all:
        print("\n| figure | apart | settled in |\n|---|---|---|")
        apart = spreads(probes)
        for key in probes[0]:
            count = sum(1 for p in probes if key in p and p[key]["settled"])
            shown = f"{apart[key]:.1%}" if key in apart else ""
            print(f"| {key[0]}: {key[1]} | {shown} | {count} of {len(probes)} |")


if __name__ == "__main__":
    main()
