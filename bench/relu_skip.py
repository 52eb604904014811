#!/usr/bin/env python3
"""How much sooner a model decodes under a budget when neurons that rest are not read: one table over budgets.

  bench/relu_skip.py RELU.ridge DENSE.ridge --budgets 200M,320M [-t 2] [-n 128] [--rounds 5] [--limit TOOL] [-o results]

RELU is a pack in bundles of a model of bench/relu_model.py, DENSE one of the same script's --dense model: the same shapes and
bytes, read whole. Every round runs, in turn, for each budget: the dense model; the ReLU model with all neurons read
(--all-neurons, in the first round alone); and with those that rest left out, once for each policy of --policies. All of them plan for themselves.

The bytes that a pass reads are foretold by `ridge sim`, from one recorded run's visits, with the same policy and as many
bundles as the engine's cache holds, plus what streams in order: table and JSON compare them with what was read.

--limit names a program that runs a command in a memory cgroup: TOOL SIZE command…. Prints Markdown; -o NAME also writes
NAME.md and NAME.json. Trust ratios, not figures.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def run(a, model, budget, *more):
    words = [str(a.ridge), "run", model, "--memory", budget, "-t", str(a.threads), "-p", "A", "--raw", "-n", str(a.n), "--temp", "0",
             "--ignore-eos", "--context", "512", "--json", *more]
    if a.limit:
        words = [a.limit, budget, *words]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"relu_skip: {' '.join(words)} ended with {done.returncode}: {done.stderr.strip()[-600:]}")
    out = json.loads(done.stdout)
    stats = out["stats"]
    passes = stats["decode_passes"] + 1  # the prompt is one
    return {"text": out["text"], "tok_per_s": stats["decode_tokens_per_s"], "bytes": stats["bytes_read"] / passes,
            "passes": passes, "wait": stats["wait_share"], "touched": stats["neurons_touched"], "hits": stats["expert_hit_ratio"],
            "placement": stats["placement"]}


def foretold(a, trace_path, placement):
    """Bytes of a pass by replay of the recorded visits to bundles."""
    trace = json.loads(pathlib.Path(trace_path).read_text())
    pinned = set(placement["pinned_on_demand"])
    # Names of bundles end in the number of the group before the slash: "blk.3.ffn.17/0".
    ours = {i for i, b in enumerate(trace["blocks"]) if b["name"].split("/")[0].count(".") == 3 and i not in pinned}
    bundle = max(trace["blocks"][i]["memory_bytes"] for i in ours)
    passes = [sorted(b for b in visits if b in ours) for visits in trace["passes"]]
    in_order = placement["in_order_bytes_per_pass"]
    asked = sum(map(len, passes))
    capacity = placement["cached_blocks"] * bundle
    if capacity == 0:
        return in_order + asked * bundle / len(passes)
    with tempfile.NamedTemporaryFile("w", suffix=".json") as filtered:
        json.dump({**trace, "passes": passes}, filtered)
        filtered.flush()
        done = subprocess.run([str(a.ridge), "sim", filtered.name, "--memory", str(capacity), "--policy",
                               placement["cache_policy"], "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        return None  # a policy that the simulator does not have
    row = json.loads(done.stdout)["rows"][0]
    return in_order + (1 - row["hit_bytes_ratio"]) * asked * bundle / len(passes)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("relu")
    p.add_argument("dense")
    p.add_argument("--budgets", required=True)
    p.add_argument("--ridge", default=ROOT / "build/release/bin/ridge")
    p.add_argument("--limit")
    p.add_argument("-t", "--threads", type=int, default=2)
    p.add_argument("-n", type=int, default=128)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--policies", default="importance", help="of --expert-policy, or auto")
    p.add_argument("-o")
    a = p.parse_args()
    results = []
    for budget in a.budgets.split(","):
        variants = {"dense": (a.dense, []), "all neurons": (a.relu, ["--all-neurons"])}
        for policy in a.policies.split(","):
            variants[f"skipping, {policy}"] = (a.relu, [] if policy == "auto" else ["--expert-policy", policy])
        rounds = {name: [] for name in variants}
        for number in range(a.rounds):
            for name, (model, more) in variants.items():
                if name == "all neurons" and number > 0:
                    continue  # slow, and no rival: for its text and its bytes
                rounds[name].append(run(a, model, budget, *more))
        texts = {r["text"] for name, rs in rounds.items() if name != "dense" for r in rs}
        if len(texts) != 1:
            sys.exit("relu_skip: texts differ")
        for name, rs in rounds.items():
            with tempfile.NamedTemporaryFile(suffix=".json") as trace:
                guess = rs[0]["placement"]["in_order_bytes_per_pass"]
                if name != "dense":
                    run(a, *([a.relu, budget] + variants[name][1]), "--record", trace.name)
                    guess = foretold(a, trace.name, rs[0]["placement"])
            rates = [r["tok_per_s"] for r in rs]
            results.append({"budget": budget, "variant": name, "tok_per_s": statistics.median(rates), "least": min(rates),
                            "most": max(rates), "speedup": statistics.median(r["tok_per_s"] / d["tok_per_s"] for r, d in
                                                                             zip(rs, rounds["dense"])),
                            "bytes_per_pass": rs[0]["bytes"], "foretold_bytes": guess, "touched": rs[0]["touched"],
                            "hits": rs[0]["hits"], "waiting": statistics.median(r["wait"] for r in rs),
                            "placement": {k: v for k, v in rs[0]["placement"].items() if k != "pinned_on_demand"}})
    lines = ["| budget | | tok/s | × dense | MB read per pass | foretold | touched | hits | waiting |", "|---|---|---|---|---|---|---|---|---|"]
    for r in results:
        told = "–" if r["foretold_bytes"] is None else f"{r['foretold_bytes'] / 1e6:.1f} ({100 * (r['bytes_per_pass'] / max(1, r['foretold_bytes']) - 1):+.1f} %)"
        lines.append(f"| {r['budget']} | {r['variant']} | {r['tok_per_s']:.2f} ({r['least']:.2f} – {r['most']:.2f}) | {r['speedup']:.2f} | "
                     f"{r['bytes_per_pass'] / 1e6:.1f} | {told} | {100 * r['touched']:.1f} % | {100 * r['hits']:.1f} % | {100 * r['waiting']:.0f} % |")
    text = "\n".join(lines) + "\n"
    print(text)
    if a.o:
        pathlib.Path(a.o + ".md").write_text(text)
        pathlib.Path(a.o + ".json").write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
