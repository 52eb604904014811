#!/usr/bin/env python3
"""How well the simulator agrees with the engine: seconds per decode pass, both ways, over models and budgets.

  bench/agreement.py MODEL… [--budgets 10,30,50,80,resident] [-t 2] [-n 12] [--rounds 12] [--context 512] [-o results]

Budgets are shares of the room between the smallest budget and the one that holds everything, in percent. Every round measures
storage (`ridge probe --storage --quick`; memory is measured once, before) and then visits all models and budgets in turn. The
simulator sees these profiles and the program of the model, nothing of the runs.

Storage that others use, too, changes its speed from second to second, and a run is compared with a profile of another
second. So only the undisturbed ones count: profiles whose rate of the engine's own requests is within 7 % of the best profile's,
and runs before and after which `ridge bench` replayed the run's reads within 7 % of the best replay of that row. Engine and
simulator are medians over those; the table says how many there were.

Prints Markdown; with -o NAME also writes NAME.md and NAME.json. Exit code 1 if a row differs by more than 15 %.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORST = 0.15
SAME = 0.07
REQUEST, DEPTH = 256 * 1024, 32  # the engine's reads


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
        self.runs = []  # (seconds per pass, GB/s of the replay)
        self.pinned, self.simulated = 0, []

    def run(self, a):
        words = [a.ridge, "bench", self.model, "-p", "0", "-n", str(a.n), "-r", "1", "--json", "--quiet"]
        result = json.loads(output_of(words + self.words))["results"][0]
        self.runs.append((1 / result["tokens_per_s"], result["storage_roof_gb_per_s"] if self.budget != "resident" else 1))

    def simulate(self, a, profile):
        report = json.loads(output_of([a.ridge, "sim", self.model, "--machine", profile, "--json", "--quiet"] + self.words))
        self.pinned = report["pinned_bytes"] / report["weights_bytes"]
        self.simulated.append(report["rows"][0]["pass_s"])

    def counted(self):
        best = max(replayed for _, replayed in self.runs)
        return [seconds for seconds, replayed in self.runs if replayed >= (1 - SAME) * best]

    def error(self):
        return statistics.median(self.simulated) / statistics.median(self.counted()) - 1


def rows_of(model, a):
    common = ["-t", str(a.threads), "--context", str(a.context)]
    plan = json.loads(output_of([a.ridge, "plan", model, "--json", "--quiet"] + common))
    low, high = plan["smallest_budget"], plan["resident_budget"]
    rows = []
    for share in a.budgets.split(","):
        if share == "resident":
            rows.append(Row(model, "resident", common))
            continue
        mib = (low + (high - low) * float(share) / 100) / (1 << 20)
        rows.append(Row(model, f"{mib:.0f}M", common + ["--memory", f"{mib:.0f}M"]))
    return rows


class Profiles:
    """Memory once, storage each round."""

    def __init__(self, a, folder):
        self.words = [a.ridge, "probe", "--file", a.models[0], "--quiet"]
        self.memory = os.path.join(folder, "memory.toml")
        self.folder, self.paths = folder, []
        output_of(self.words + ["-o", self.memory])

    def measure(self):
        path = os.path.join(self.folder, f"machine-{len(self.paths)}.toml")
        shutil.copy(self.memory, path)
        output_of(self.words + ["-o", path, "--storage", "--quick"])
        point = re.search(rf"request_bytes = {REQUEST}, depth = {DEPTH}, direct = true, gb_per_s = ([0-9.]+)", pathlib.Path(path).read_text())
        self.paths.append((float(point.group(1)) if point else 1, path))

    def counted(self):
        best = max(rate for rate, _ in self.paths)
        return [path for rate, path in self.paths if rate >= (1 - SAME) * best]


def table(rows, profiles, a):
    lines = [f"Context {a.context}, {a.threads} threads, {a.rounds} rounds; {len(profiles.counted())} of {len(profiles.paths)} profiles count.",
             "", "| model | budget | pinned | engine, ms per pass | its quartiles | runs | simulated | differs by |", "|---|---|---|---|---|---|---|---|"]
    for r in rows:
        counted = r.counted()
        low, middle, high = statistics.quantiles(counted, n=4) if len(counted) > 1 else 3 * counted
        lines.append(f"| {pathlib.Path(r.model).stem} | {r.budget} | {100 * r.pinned:.0f} % | {1e3 * middle:.2f} | {1e3 * low:.2f} to {1e3 * high:.2f} | "
                     f"{len(counted)} of {len(r.runs)} | {1e3 * statistics.median(r.simulated):.2f} | {100 * r.error():+.1f} % |")
    errors = [abs(r.error()) for r in rows]
    lines += ["", f"{sum(e <= 0.1 for e in errors)} of {len(rows)} rows within 10 %; worst {100 * max(errors):.1f} %."]
    return "\n".join(lines) + "\n"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("models", metavar="MODEL", nargs="+")
    p.add_argument("--budgets", default="10,30,50,80,resident")
    p.add_argument("-t", "--threads", type=int, default=2)
    p.add_argument("-n", type=int, default=12, help="tokens to generate in a run")
    p.add_argument("--rounds", type=int, default=12)
    p.add_argument("--context", type=int, default=512)
    p.add_argument("--ridge", default=str(ROOT / "build/release/bin/ridge"))
    p.add_argument("-o", "--output", help="also write NAME.md and NAME.json")
    a = p.parse_args()
    if a.rounds < 1:
        p.error("--rounds: give 1 or more")
    rows = [row for model in a.models for row in rows_of(model, a)]
    with tempfile.TemporaryDirectory() as folder:
        profiles = Profiles(a, folder)
        for number in range(a.rounds):
            profiles.measure()
            for row in rows:
                row.run(a)
            print(f"round {number + 1} of {a.rounds}", file=sys.stderr)
        for row in rows:
            for profile in profiles.counted():
                row.simulate(a, profile)
    text = table(rows, profiles, a)
    print(text, end="")
    if a.output:
        pathlib.Path(a.output + ".md").write_text(text)
        data = [{"model": r.model, "budget": r.budget, "pinned": r.pinned, "runs": r.runs, "simulated_s": r.simulated} for r in rows]
        pathlib.Path(a.output + ".json").write_text(json.dumps(data, indent=1) + "\n")
    return 1 if max(abs(r.error()) for r in rows) > WORST else 0


if __name__ == "__main__":
    sys.exit(main())
