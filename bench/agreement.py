#!/usr/bin/env python3
"""How well the simulator agrees with the engine: seconds per decode pass, both ways, over models and budgets.

  bench/agreement.py MODEL… [--budgets 30,45,60,80,resident] [-t 2] [-n 16] [--rounds 5] [--context 512] [-o results]

Budgets are shares of the room between the smallest budget and the one that holds everything, in percent. Every round visits
all models and budgets in turn, so that no row has a better hour than another. The simulator sees a profile that
`ridge probe` measures here, before the first round, between the rounds and after the last one, and the program of the
model; nothing of the runs. The simulated figure is the median over these profiles, the engine's the median over the rounds.

A probe takes 40 s. Prints Markdown; with -o NAME also writes NAME.md and NAME.json. Exit code 1 if a row differs by more than 15 %.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORST = 0.15


def fail(message):
    sys.exit(f"agreement: {message}")


def output_of(words):
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        fail(f"{' '.join(words)} ended with {done.returncode}: {done.stderr.strip()[-400:]}")
    return done.stdout


class Row:
    """A model under a budget."""

    def __init__(self, model, budget, words):
        self.model, self.budget, self.words = model, budget, words
        self.engine, self.simulated = [], []
        self.pinned = self.contended = 0

    def run(self, a):
        words = [a.ridge, "bench", self.model, "-p", "0", "-n", str(a.n), "-r", "1", "--json", "--quiet"]
        result = json.loads(output_of(words + self.words))["results"][0]
        self.engine.append(1 / result["tokens_per_s"])
        self.contended += result["contended"]

    def simulate(self, a, profile):
        report = json.loads(output_of([a.ridge, "sim", self.model, "--machine", profile, "--json", "--quiet"] + self.words))
        self.simulated.append(report["rows"][0]["pass_s"])
        self.pinned = report["pinned_bytes"] / report["weights_bytes"]

    def error(self):
        return statistics.median(self.simulated) / statistics.median(self.engine) - 1


def rows_of(model, a):
    common = ["-t", str(a.threads), "--context", str(a.context)]
    plan = json.loads(output_of([a.ridge, "plan", model, "--context", str(a.context), "-t", str(a.threads), "--json", "--quiet"]))
    low, high = plan["smallest_budget"], plan["resident_budget"]
    rows = []
    for share in a.budgets.split(","):
        if share == "resident":
            rows.append(Row(model, "resident", common))
            continue
        mib = (low + (high - low) * float(share) / 100) / (1 << 20)
        rows.append(Row(model, f"{mib:.0f}M", common + ["--memory", f"{mib:.0f}M"]))
    return rows


def probe(a, folder):
    profile = os.path.join(folder, "machine.toml")
    output_of([a.ridge, "probe", "--file", a.models[0], "-o", profile, "--quiet"])
    return profile


def table(rows, a):
    lines = [f"Context {a.context}, {a.threads} threads, {a.rounds} rounds.", "",
             "| model | budget | pinned | engine, ms per pass | its quartiles | simulated | differs by |", "|---|---|---|---|---|---|---|"]
    for r in rows:
        low, middle, high = statistics.quantiles(r.engine, n=4) if len(r.engine) > 1 else 3 * r.engine
        lines.append(f"| {pathlib.Path(r.model).stem} | {r.budget} | {100 * r.pinned:.0f} % | {1e3 * middle:.2f} | "
                     f"{1e3 * low:.2f} to {1e3 * high:.2f} | {1e3 * statistics.median(r.simulated):.2f} | {100 * r.error():+.1f} % |")
    errors = [abs(r.error()) for r in rows]
    within = sum(e <= 0.1 for e in errors)
    lines += ["", f"{within} of {len(rows)} rows within 10 %; worst {100 * max(errors):.1f} %."]
    return "\n".join(lines) + "\n"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("models", metavar="MODEL", nargs="+")
    p.add_argument("--budgets", default="10,30,50,80,resident")
    p.add_argument("-t", "--threads", type=int, default=2)
    p.add_argument("-n", type=int, default=16, help="tokens to generate in a run")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--context", type=int, default=512)
    p.add_argument("--ridge", default=str(ROOT / "build/release/bin/ridge"))
    p.add_argument("-o", "--output", help="also write NAME.md and NAME.json")
    a = p.parse_args()
    if a.rounds < 1:
        p.error("--rounds: give 1 or more")
    rows = [row for model in a.models for row in rows_of(model, a)]
    with tempfile.TemporaryDirectory() as folder:
        for number in range(a.rounds):
            profile = probe(a, folder)
            for row in rows:
                row.simulate(a, profile)
                row.run(a)
            print(f"round {number + 1} of {a.rounds}: " + ", ".join(f"{100 * r.error():+.0f} %" for r in rows), file=sys.stderr)
        profile = probe(a, folder)
        for row in rows:
            row.simulate(a, profile)
    text = table(rows, a)
    print(text, end="")
    if a.output:
        pathlib.Path(a.output + ".md").write_text(text)
        data = [{"model": r.model, "budget": r.budget, "engine_s": r.engine, "simulated_s": r.simulated} for r in rows]
        pathlib.Path(a.output + ".json").write_text(json.dumps(data, indent=1) + "\n")
    return 1 if max(abs(r.error()) for r in rows) > WORST else 0


if __name__ == "__main__":
    sys.exit(main())
