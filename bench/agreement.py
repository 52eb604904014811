#!/usr/bin/env python3
"""How well the simulator agrees with the engine: seconds per decode pass, both ways, over models and budgets.

  bench/agreement.py MODEL… [--budgets 30,45,60,80,resident] [-t 2] [-n 16] [--rounds 5] [--context 512] [-o results]

Budgets are shares of the room between the smallest budget and the one that holds everything, in percent. Every round visits
all models and budgets in turn, so that no row has a better hour than another. The simulator sees a profile that
`ridge probe --quick` measures here and the program of the model, nothing of the runs. The machine is measured before and
after each run, and both profiles are simulated. Where others use the storage, too, its speed changes from second to second.
So a run counts only if the two simulations differ by at most 7 %, if the profiles' rate of storage is within 7 % of that at which
`ridge bench` replays the run's reads with nobody computing, and if it is within 7 % of the best seen. How many runs
count is in the table.

Prints Markdown; with -o NAME also writes NAME.md and NAME.json. Exit code 1 if a row differs by more than 15 %.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORST = 0.15
SAME = 0.07  # share by which the machine may differ before, during and after a run
REQUEST = 256 * 1024  # bytes of the engine's reads


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
        self.all = []  # (engine's seconds, simulated ones, GB/s of storage or None) of runs during which the machine was the same
        self.runs = 0
        self.pinned = 0

    def run(self, a):
        words = [a.ridge, "bench", self.model, "-p", "0", "-n", str(a.n), "-r", "1", "--json", "--quiet"]
        return json.loads(output_of(words + self.words))["results"][0]

    def simulate(self, a, profile):
        report = json.loads(output_of([a.ridge, "sim", self.model, "--machine", profile, "--json", "--quiet"] + self.words))
        self.pinned = report["pinned_bytes"] / report["weights_bytes"]
        model = report["model"]
        read = REQUEST / (model["storage_request_s"] + REQUEST / model["storage_bytes_per_s"]) / 1e9
        return report["rows"][0]["pass_s"], read

    def measure(self, a, before, after):
        """`after` measures the machine once more when the run is over."""
        run = self.run(a)
        self.runs += 1
        (one, read_before), (two, read_after) = self.simulate(a, before), self.simulate(a, after())
        read, replayed = (read_before + read_after) / 2, run["storage_roof_gb_per_s"]
        if abs(one / two - 1) <= SAME and (not replayed or abs(replayed / read - 1) <= SAME):
            self.all.append((1 / run["tokens_per_s"], (one + two) / 2, read if replayed else None))
        return read

    def count(self, best):
        """Those that count, once the best rate of storage is known."""
        counted = [(e, s) for e, s, read in self.all if read is None or read >= (1 - SAME) * best]
        self.engine, self.simulated = [e for e, _ in counted], [s for _, s in counted]

    def error(self):
        return statistics.median(s / e for s, e in zip(self.simulated, self.engine)) - 1 if self.engine else float("nan")


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


def probe(a, folder, number):
    """Memory once, storage each time."""
    profile, base = (os.path.join(folder, f"machine-{n}.toml") for n in (number % 2, "memory"))
    words = [a.ridge, "probe", "--file", a.models[0], "--quiet"]
    if not os.path.exists(base):
        output_of(words + ["-o", base])
    shutil.copy(base, profile)
    output_of(words + ["-o", profile, "--storage", "--quick"])
    return profile


def table(rows, a):
    lines = [f"Context {a.context}, {a.threads} threads, {a.rounds} rounds.", "",
             "| model | budget | pinned | engine, ms per pass | its quartiles | simulated | differs by | runs |", "|---|---|---|---|---|---|---|---|"]
    for r in rows:
        runs = f"{len(r.engine)} of {r.runs}"
        if len(r.engine) < 2:
            lines.append(f"| {pathlib.Path(r.model).stem} | {r.budget} | {100 * r.pinned:.0f} % | – | – | – | – | {runs} |")
            continue
        low, middle, high = statistics.quantiles(r.engine, n=4)
        lines.append(f"| {pathlib.Path(r.model).stem} | {r.budget} | {100 * r.pinned:.0f} % | {1e3 * middle:.2f} | {1e3 * low:.2f} to "
                     f"{1e3 * high:.2f} | {1e3 * statistics.median(r.simulated):.2f} | {100 * r.error():+.1f} % | {runs} |")
    errors = [abs(r.error()) for r in rows if len(r.engine) > 1]
    lines += ["", f"{sum(e <= 0.1 for e in errors)} of {len(errors)} rows within 10 %; worst {100 * max(errors, default=0):.1f} %."]
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
        count, best = 0, 0
        profile = probe(a, folder, count)

        def after():
            nonlocal count, profile
            count += 1
            profile = probe(a, folder, count)
            return profile

        for number in range(a.rounds):
            for row in rows:
                best = max(best, row.measure(a, profile, after))
            for row in rows:
                row.count(best)
            print(f"round {number + 1} of {a.rounds}: " + ", ".join(f"{100 * r.error():+.0f} %" for r in rows), file=sys.stderr)
    text = table(rows, a)
    print(text, end="")
    if a.output:
        pathlib.Path(a.output + ".md").write_text(text)
        data = [{"model": r.model, "budget": r.budget, "engine_s": r.engine, "simulated_s": r.simulated} for r in rows]
        pathlib.Path(a.output + ".json").write_text(json.dumps(data, indent=1) + "\n")
    return 1 if any(abs(r.error()) > WORST for r in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
