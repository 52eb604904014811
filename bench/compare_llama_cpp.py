#!/usr/bin/env python3
"""Compares Ridge with llama.cpp: the same models, threads and tests, rounds of the two in turn, and the ratio of each round.

  bench/compare_llama_cpp.py MODEL… [-t 1,2] [-p 512] [-n 64] [-d 0] [--rounds 5] [-o results]

Finds llama-bench (--llama-bench, PATH, or build/llama.cpp) or builds it (bench/build_llama_cpp.sh build/llama.cpp), and
Ridge in build/release. Prints a Markdown table; with -o NAME also writes NAME.md and NAME.json.

A round runs both programs once on each model, the first one alternating, each with its own warm-up. The ratio is the
median of the rounds' ratios; the range is from the smallest to the largest. Machines are noisy and drift: trust the ratio,
not the figures. llama.cpp repacks weights as it does by default, and uses its own default of flash attention.
"""
import argparse
import datetime
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def fail(message):
    sys.exit(f"compare_llama_cpp: {message}")


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("models", nargs="+", metavar="MODEL", help="GGUF files")
    p.add_argument("-t", "--threads", default="1,2", help="thread counts, such as 1,2")
    p.add_argument("-p", "--prompt", default="512", help="prompt lengths; 0: none")
    p.add_argument("-n", "--generate", default="64", help="numbers of tokens to generate; 0: none")
    p.add_argument("-d", "--depth", default="0", help="tokens in the context before")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--ridge", default=str(ROOT / "build/release/bin/ridge"))
    p.add_argument("--llama-bench", help="the program; default: found, or built")
    p.add_argument("-o", "--output", help="also write NAME.md and NAME.json")
    a = p.parse_args()
    if a.rounds < 1:
        p.error("--rounds: give 1 or more")
    return a


def find_llama_bench(given):
    for candidate in ([given] if given else [shutil.which("llama-bench"), str(ROOT / "build/llama.cpp/bin/llama-bench")]):
        if candidate and os.access(candidate, os.X_OK):
            return candidate
    if given:
        fail(f"{given} is no program")
    print("llama-bench is not here: building it (about 10 minutes)", file=sys.stderr)
    built = subprocess.run([ROOT / "bench/build_llama_cpp.sh", ROOT / "build/llama.cpp"], stdout=subprocess.PIPE, text=True)
    if built.returncode != 0:
        fail("llama.cpp could not be built; see above")
    return built.stdout.strip().splitlines()[-1] + "/llama-bench"


def run(words):
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode < 0:
        fail(f"{words[0]} was killed by signal {-done.returncode}"
             + (" (an illegal instruction: rebuild it with bench/build_llama_cpp.sh)" if done.returncode == -4 else ""))
    if done.returncode != 0:
        fail(f"{words[0]} ended with {done.returncode}: {done.stderr.strip()[-500:]}")
    return done.stdout


def ridge(a, model):
    """Test to (tokens per second, contended, share of the roof)."""
    out = run([a.ridge, "bench", model, "-p", a.prompt, "-n", a.generate, "-d", a.depth, "-t", a.threads, "-r", "1",
               "--json", "--quiet"])
    return {(r["test"], r["tokens"], r["depth"], r["threads"]): (r["tokens_per_s"], r["contended"], r["roof_share"])
            for r in json.loads(out)["results"]}


def llama(a, model):
    out = run([a.llama_bench, "-m", model, "-p", a.prompt, "-n", a.generate, "-d", a.depth, "-t", a.threads, "-r", "1",
               "-o", "json"])
    results = {}
    for r in json.loads(out):
        test, tokens = ("prefill", r["n_prompt"]) if r["n_prompt"] > 0 else ("decode", r["n_gen"])
        results[test, tokens, r.get("n_depth", 0), r["n_threads"]] = (r["avg_ts"],)
    return results


def measure(a):
    """(model, test) to the rounds' pairs: figures of Ridge, figures of llama.cpp."""
    rounds = {}
    for i in range(a.rounds):
        for model in a.models:
            print(f"round {i + 1} of {a.rounds}: {os.path.basename(model)}", file=sys.stderr)
            sides = {}
            for side in (ridge, llama) if i % 2 == 0 else (llama, ridge):
                sides[side] = side(a, model)
            for test in sides[ridge]:
                if test in sides[llama]:
                    rounds.setdefault((model, test), []).append((sides[ridge][test], sides[llama][test]))
    return rounds


def cpu_name():
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return os.uname().machine


def summary(a, rounds):
    results = []
    for (model, (test, tokens, depth, threads)), pairs in rounds.items():
        ratios = [mine[0] / theirs[0] for mine, theirs in pairs]
        shares = [mine[2] for mine, _ in pairs if mine[2] is not None]
        results.append({
            "model": os.path.basename(model), "test": test, "tokens": tokens, "depth": depth, "threads": threads,
            "ridge_tokens_per_s": statistics.median(mine[0] for mine, _ in pairs),
            "llama_cpp_tokens_per_s": statistics.median(theirs[0] for _, theirs in pairs),
            "ratio": statistics.median(ratios), "ratio_low": min(ratios), "ratio_high": max(ratios),
            "roof_share": statistics.median(shares) if shares else None,
            "contended_rounds": sum(mine[1] for mine, _ in pairs), "rounds": len(pairs), "ratios": ratios,
        })
    return {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"), "cpu": cpu_name(),
            "cpus": len(os.sched_getaffinity(0)), "ridge": run([a.ridge, "--version"]).strip(),
            "command": "bench/compare_llama_cpp.py " + " ".join(os.path.basename(m) for m in a.models)
                       + f" -t {a.threads} -p {a.prompt} -n {a.generate} -d {a.depth} --rounds {a.rounds}",
            "results": results}


def markdown(s):
    lines = ["| model | test | threads | Ridge tok/s | llama.cpp tok/s | ratio (range) | Ridge, of the roof |",
             "|---|---|---|---|---|---|---|"]
    for r in s["results"]:
        depth = f" at depth {r['depth']}" if r["depth"] else ""
        share = f"{r['roof_share'] * 100:.0f} %" if r["roof_share"] is not None else "–"
        mark = " *" if r["contended_rounds"] else ""
        lines.append(f"| {r['model']} | {r['test']} {r['tokens']}{depth} | {r['threads']} | {r['ridge_tokens_per_s']:.1f} "
                     f"| {r['llama_cpp_tokens_per_s']:.1f} | **{r['ratio']:.2f}** ({r['ratio_low']:.2f}–{r['ratio_high']:.2f}){mark} "
                     f"| {share} |")
    lines += ["", f"{s['date']}, {s['cpu']} ({s['cpus']} CPUs), {s['ridge']}; `{s['command']}`. Medians of the rounds; the ratio "
              "is of each round's pair, with the smallest and the largest."]
    if any(r["contended_rounds"] for r in s["results"]):
        lines.append("`*`: others used the machine in some rounds.")
    return "\n".join(lines) + "\n"


def main():
    a = arguments()
    for path in [a.ridge, *a.models]:
        if not os.path.exists(path):
            fail(f"{path} does not exist")
    a.llama_bench = find_llama_bench(a.llama_bench)
    result = summary(a, measure(a))
    text = markdown(result)
    print(text, end="")
    if a.output:
        pathlib.Path(a.output + ".md").write_text(text, encoding="utf-8")
        pathlib.Path(a.output + ".json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
