#!/usr/bin/env python3
"""How near decoding under a memory budget comes to its bound, and what llama.cpp does there: one table over budgets.

  bench/streaming.py MODEL --budgets 250M,300M,480M [-t 2] [-n 16] [--rounds 7] [--context 512] [--llama-bench FILE]
                     [--pins leading,none,lru] [-o results]

Every round measures, in turn: Ridge with everything in memory; and for each budget, in a memory cgroup of exactly that
size, Ridge with that budget, with its other rules of pinning (--pins), and llama.cpp (mmap, not repacked, as it would be
killed otherwise). `ridge bench` replays the run's own reads, with nobody computing, before and after each repetition:
that is the storage speed of the bound, which is the slower of these reads and of computing with everything in memory. A page cache that is cold before every run is the
rule for Ridge, which never uses it; for llama.cpp the cgroup starts with none of the file charged to it.

Needs root for the cgroups. Prints Markdown; with -o NAME also writes NAME.md and NAME.json. Trust ratios, not figures.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def fail(message):
    sys.exit(f"streaming: {message}")


def bytes_of(text):
    if not text or not text[:-1].replace(".", "", 1).isdigit() or text[-1] not in UNITS:
        fail(f"budget {text!r} is not understood: write 300M or 1.5G")
    return int(float(text[:-1]) * UNITS[text[-1]])


class Cgroup:
    """A memory cgroup of one size, version 1 or 2."""

    def __init__(self, limit):
        one = pathlib.Path("/sys/fs/cgroup/memory")
        self.folder = (one if one.is_dir() else pathlib.Path("/sys/fs/cgroup")) / f"ridge-bench-{os.getpid()}"
        try:
            self.folder.mkdir()
            limit_file = "memory.limit_in_bytes" if one.is_dir() else "memory.max"
            (self.folder / limit_file).write_text(str(limit))
        except OSError as e:
            fail(f"a memory cgroup cannot be made ({e}): run as root")

    def run(self, words):
        def enter():
            (self.folder / "cgroup.procs").write_text(str(os.getpid()))
        return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, preexec_fn=enter)

    def failures(self):
        one = self.folder / "memory.failcnt"
        if one.exists():
            return int(one.read_text())
        events = dict(line.split() for line in (self.folder / "memory.events").read_text().splitlines())
        return int(events["max"])

    def close(self):
        force = self.folder / "memory.force_empty"
        if force.exists():
            force.write_text("0")
        self.folder.rmdir()


def ridge_words(a, *more):
    return [a.ridge, "bench", a.model, "-p", "0", "-n", str(a.n), "-t", str(a.threads), "--context", str(a.context), "-r", "1",
            "--json", "--quiet", *more]


def result_of(done, name):
    if done.returncode != 0:
        fail(f"{name} ended with {done.returncode}: {done.stderr.strip()[-400:]}")
    return json.loads(done.stdout)["results"][0]


def llama_in(group, a):
    words = [a.llama_bench, "-m", a.model, "-p", "0", "-n", str(a.n), "-t", str(a.threads), "-r", "1", "-o", "json",
             "--load-mode", "mmap", "--repack", "0"]
    done = group.run(words)
    return json.loads(done.stdout)[0]["avg_ts"] if done.returncode == 0 else None


def measure(a, budgets, rounds):
    """Adds to `rounds`; those that are over stay where Ctrl-C ends it."""
    for r in range(a.rounds):
        resident = result_of(subprocess.run(ridge_words(a), stdin=subprocess.DEVNULL, capture_output=True, text=True), "ridge")
        row = {"resident": resident["tokens_per_s"], "budgets": {}}
        for name, limit in budgets:
            group = Cgroup(limit)
            try:
                x = result_of(group.run(ridge_words(a, "-m", name)), f"ridge in {name}")
                # Bytes per token by the run's own count, at the rate of its own reads.
                reading = x["storage_roof_gb_per_s"] / x["storage_gb_per_s"] * x["tokens_per_s"] if x["storage_gb_per_s"] else None
                bound = min(row["resident"], reading) if reading else row["resident"]
                cell = {"tok_s": x["tokens_per_s"], "reading": reading, "bound": bound, "share": x["tokens_per_s"] / bound,
                        "peak": x["peak_bytes"], "failures": group.failures(), "contended": x["contended"]}
            finally:
                group.close()
            for rule in a.pins:
                group = Cgroup(limit)
                try:
                    x = result_of(group.run(ridge_words(a, "-m", name, "--pins", rule)), f"ridge --pins {rule} in {name}")
                    cell["pins " + rule] = x["tokens_per_s"]
                finally:
                    group.close()
            if a.llama_bench:
                group = Cgroup(limit)
                try:
                    cell["llama"] = llama_in(group, a)
                finally:
                    group.close()
            row["budgets"][name] = cell
        rounds.append(row)
        print(f"round {r + 1} of {a.rounds}: " + ", ".join(
            f"{n} {c['tok_s']:.1f} tok/s, {100 * c['share']:.0f} %" for n, c in row["budgets"].items()), file=sys.stderr)


def table(a, budgets, rounds):
    def over(name, key):
        values = [r["budgets"][name].get(key) for r in rounds]
        values = [v for v in values if v is not None]
        return statistics.median(values) if values else None

    def shown(value, digits=1):
        return "–" if value is None else f"{value:.{digits}f}"

    lines = [f"{pathlib.Path(a.model).name}, context {a.context}, {a.threads} threads, medians of {len(rounds)} rounds; everything in memory: "
             f"{statistics.median(r['resident'] for r in rounds):.1f} tok/s.", "",
             "| budget | tok/s | bound | of the bound | its own reads alone |" +
             "".join(f" pins {rule} | times |" for rule in a.pins) + " llama.cpp | times | failcnt |",
             "|---|---|---|---|---|---|---|---|" + "---|---|" * len(a.pins)]
    for name, _ in budgets:
        mine, llama = over(name, "tok_s"), over(name, "llama")
        rules = ""
        for rule in a.pins:
            # Of neighbours in time, since the machine is not the same for long.
            times = statistics.median(r["budgets"][name]["tok_s"] / r["budgets"][name]["pins " + rule] for r in rounds)
            rules += f" {shown(over(name, 'pins ' + rule))} | {times:.2f} |"
        lines.append(f"| {name} | {shown(mine)} | {shown(over(name, 'bound'))} | {100 * over(name, 'share'):.0f} % | "
                     f"{shown(over(name, 'reading'))} |{rules} {shown(llama)} | {shown(mine / llama if llama else None)} | "
                     f"{sum(r['budgets'][name]['failures'] for r in rounds)} |")
    return "\n".join(lines) + "\n"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model", metavar="MODEL")
    p.add_argument("--budgets", default="250M,300M,360M,420M,480M,540M,600M")
    p.add_argument("-t", "--threads", type=int, default=2)
    p.add_argument("-n", type=int, default=16, help="tokens to generate in a run")
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--context", type=int, default=512)
    p.add_argument("--ridge", default=str(ROOT / "build/release/bin/ridge"))
    p.add_argument("--llama-bench", help="the program; without it llama.cpp is left out")
    p.add_argument("--pins", type=lambda text: text.split(","), default=[], help="other rules of pinning: leading, none, lru")
    p.add_argument("-o", "--output", help="also write NAME.md and NAME.json")
    a = p.parse_args()
    if a.rounds < 1:
        p.error("--rounds: give 1 or more")
    budgets = [(name, bytes_of(name)) for name in a.budgets.split(",")]
    rounds = []
    try:
        measure(a, budgets, rounds)
    except KeyboardInterrupt:
        print(f"streaming: interrupted after {len(rounds)} of {a.rounds} rounds", file=sys.stderr)
    if not rounds:
        return
    text = table(a, budgets, rounds)
    print(text, end="")
    if a.output:
        pathlib.Path(a.output + ".md").write_text(text)
        pathlib.Path(a.output + ".json").write_text(json.dumps({"model": a.model, "rounds": rounds}, indent=1) + "\n")


if __name__ == "__main__":
    main()
