#!/usr/bin/env python3
"""How well the model of machines of tiers (`ridge sim MODEL --machine`, docs/npu.md) foretells this host's engine.

  bench/npu_host.py MODEL… [-t 1,2] [--rounds 5] [-n 24] [--profile machine.toml] [--ridge PROGRAM] [-o results]

Writes a profile of the host with tiers from what `ridge probe` measured, and nothing from runs of the model: DRAM as it reads at 256 MiB
and more, its latency, the second cache as inner SRAM, the int8 peak, and as `utilisation` the share of that peak at which a core unpacks
and multiplies the model's commonest type while weights stay in its cache. Caches that hardware fills hold nothing of a cyclic order, so
nothing is kept (--policy none). The engine decodes with everything in memory, models and thread counts in turn.

Energies are those of profiles/host-zen5.toml and not looked at. Prints Markdown; with -o NAME also writes NAME.md and NAME.json.
Exit code 1 if a row differs by more than 15 %.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORST = 0.15


def output_of(words):
    done = subprocess.run([str(w) for w in words], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"npu_host: {' '.join(map(str, words))} ended with {done.returncode}: {done.stderr.strip()[-400:]}")
    return done.stdout


def commonest_type(a, model):
    """By bytes, and weights of a byte of it."""
    tensors = json.loads(output_of([a.ridge, "info", model, "--json", "--tensors"]))["tensors"]
    sums = {}
    for t in tensors:
        weights = 1
        for d in t["shape"]:
            weights *= d
        old = sums.get(t["type"], (0, 0))
        sums[t["type"]] = (old[0] + t["bytes"], old[1] + weights)
    name, (size, weights) = max(sums.items(), key=lambda item: item[1][0])
    return name, weights / size


def read_rate(profile, footprints, threads):
    points = [r for r in profile["reads"] if footprints(r["footprint_bytes"]) and r["threads"] == threads]
    if not points:
        sys.exit(f"npu_host: the profile has no reads with {threads} threads: probe with them, or give -t")
    return max(r["gb_per_s"] for r in points)


def of_host(profile, template, kind, per_byte, threads):
    """The profile of host-zen5 with this machine's speeds."""
    peak = max(p["gops"] for p in profile["peaks"] if p["type"] == "int8" and p["threads"] == threads and not p["isa"].startswith("amx"))
    rate = next((f["gb_per_s"] for f in profile["formats"] if f["type"] == kind), None)
    if rate is None:
        sys.exit(f"npu_host: the profile has no rate of {kind}: probe again")
    clock = max(profile["clock_ghz_before"], profile["clock_ghz_after"])
    dram = read_rate(profile, lambda b: b >= 256 << 20, threads)
    l2 = read_rate(profile, lambda b: b == 512 << 10, threads)
    latency = max(profile["latencies"], key=lambda x: x["footprint_bytes"])["ns"]
    measured = {
        "npu": {"clock_ghz": clock, "macs_per_cycle": peak / 2 / clock, "utilisation": min(1, threads * rate * per_byte / (peak / 2))},
        "local_sram": {"bytes": threads << 20, "read_gb_per_s": l2, "write_gb_per_s": l2},
        # Rows of banks are in the measured rate.
        "dram": {"read_gb_per_s": dram, "latency_ns": latency, "row_ns": 0},
    }
    lines = ["format = 1", "name = 'this host'", "measured_at = ''", "contended = false", "contention = ''", "storage_path = ''", "figures = []", ""]

    def add(head, key, figures):
        lines.append(head)
        lines.append("figures = [")
        for f in figures:
            new = measured.get(key, {}).get(f["what"])
            status, source, value = (f["status"], f["source"], f["value"]) if new is None else ("measured", "ridge probe", new)
            lines.append(f"  {{ what = '{f['what']}', value = {value}, status = '{status}', source = {json.dumps(source)} }},")
        lines.extend(["]", ""])

    add("[npu]", "npu", template["npu"]["figures"])
    for tier in template["tiers"]:
        if tier["kind"] != "shared_sram":
            add(f"[[tiers]]\nkind = '{tier['kind']}'\nname = '{tier['name']}'", tier["kind"], tier["figures"])
    return "\n".join(lines), measured


def table(rows, a):
    lines = [f"{a.n} tokens from an empty cache, {a.rounds} rounds, everything in memory.", "",
             "| model | type | threads | DRAM, GB/s | array, GB/s of weights | engine, ms | its quartiles | simulated, ms | differs by | binds |",
             "|---|---|---|---|---|---|---|---|---|---|"]
    for r in rows:
        low, middle, high = statistics.quantiles(r["engine_s"], n=4) if len(r["engine_s"]) > 1 else 3 * r["engine_s"]
        lines.append(f"| {r['model']} | {r['type']} | {r['threads']} | {r['dram_gb_per_s']:.1f} | {r['array_gb_per_s']:.1f} | {1e3 * middle:.2f} | "
                     f"{1e3 * low:.2f} to {1e3 * high:.2f} | {1e3 * r['simulated_s']:.2f} | {100 * r['differs']:+.1f} % | {r['binds']} |")
    return "\n".join(lines) + "\n"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("models", metavar="MODEL", nargs="+")
    p.add_argument("-t", "--threads", default="1,2", help="a list")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("-n", type=int, default=24, help="tokens to generate in a run")
    p.add_argument("--profile", help="of ridge probe; without it the host is probed first")
    p.add_argument("--ridge", default=str(ROOT / "build/release/bin/ridge"))
    p.add_argument("-o", "--output", help="also write NAME.md and NAME.json")
    a = p.parse_args()
    template = tomllib.loads((ROOT / "profiles/host-zen5.toml").read_text())
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        if a.profile is None:
            a.profile = folder / "machine.toml"
            output_of([a.ridge, "probe", "-o", a.profile, "--quiet"])
        profile = tomllib.loads(pathlib.Path(a.profile).read_text())
        for model in a.models:
            kind, per_byte = commonest_type(a, model)
            for threads in map(int, a.threads.split(",")):
                text, m = of_host(profile, template, kind, per_byte, threads)
                made = folder / f"host-{len(rows)}.toml"
                made.write_text(text)
                report = json.loads(output_of([a.ridge, "sim", model, "--machine", made, "--policy", "none", "--context", a.n, "--json", "--quiet"]))
                row = next(r for r in report["rows"] if r["policy"] == "none")
                array = m["npu"]["clock_ghz"] * m["npu"]["macs_per_cycle"] * m["npu"]["utilisation"] / per_byte
                rows.append({"path": model, "model": pathlib.Path(model).stem, "type": kind, "threads": threads, "engine_s": [],
                             "dram_gb_per_s": m["dram"]["read_gb_per_s"], "array_gb_per_s": array, "simulated_s": row["pass_s"], "binds": row["binds"]})
        for number in range(a.rounds):
            for row in rows:
                words = [a.ridge, "bench", row["path"], "-p", 0, "-n", a.n, "-t", row["threads"], "-r", 1, "--json", "--quiet"]
                row["engine_s"].append(1 / json.loads(output_of(words))["results"][0]["tokens_per_s"])
            print(f"round {number + 1} of {a.rounds}", file=sys.stderr)
    for row in rows:
        row["differs"] = row["simulated_s"] / statistics.median(row["engine_s"]) - 1
    text = table(rows, a)
    print(text, end="")
    if a.output:
        pathlib.Path(a.output + ".md").write_text(text)
        pathlib.Path(a.output + ".json").write_text(json.dumps(rows, indent=1) + "\n")
    return 1 if max(abs(r["differs"]) for r in rows) > WORST else 0


if __name__ == "__main__":
    sys.exit(main())
