#!/usr/bin/env python3
"""Tokens per second with and without drafts, by kind of text, in rounds of all variants in turn.

usage: bench/speculation.py MODEL [--ridge PROGRAM] [--memory 64M] [--context 512] [-n 160] [--rounds 3]
                            [--variant "--draft-ngram 4"]... [--text NAME]... [--sampling "--temp 0"]

Prints a Markdown table: medians of the rounds, and the ratio to plain generation in the same round. All variants of a
text must generate the same tokens, or the program ends with 1.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
STORY = ("The old lighthouse keeper had not spoken to anyone for eleven days when the boat came in. It was a small boat, painted "
         "green once, and the woman who rowed it did not look up until she had tied it to the iron ring below the stairs.")
QUESTION = "What should I pack for a week of hiking in the mountains in autumn? Explain why each thing is needed."
EDIT = ("Repeat this list of tasks in full, with every word, but put the word DONE before each task that mentions the garden.\n"
        "1. Water the plants in the garden before noon.\n2. Buy bread, milk and two kinds of cheese.\n"
        "3. Repair the fence at the end of the garden.\n4. Write a letter to the bank about the new account.\n"
        "5. Clean the windows of the kitchen and the living room.\n")


def texts():
    code = (ROOT / "src/base/units.cpp").read_text(encoding="utf-8").splitlines()[:24]
    return {"code": ["--raw", "-p", "\n".join(code) + "\n"], "list to copy": ["-p", EDIT], "chat": ["-p", QUESTION],
            "prose": ["--raw", "-p", STORY]}


def run(options, text, variant):
    words = [options.ridge, "run", options.model, *text, *variant, "--context", options.context, "-n", options.n, "--ignore-eos",
             "--json", "-q", "-t", options.threads]
    words += options.sampling.split()
    if options.memory:
        words += ["--memory", options.memory]
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        sys.exit(f"{words}: {done.stderr}")
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--ridge", default=ROOT / "build/release/bin/ridge")
    parser.add_argument("--memory")
    parser.add_argument("--context", default="512")
    parser.add_argument("-n", default="160")
    parser.add_argument("-t", "--threads", default="2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--variant", action="append", default=[])
    parser.add_argument("--text", action="append", default=[])
    parser.add_argument("--sampling", default="--temp 0")
    options = parser.parse_args()
    variants = [[]] + [v.split() for v in options.variant or ["--draft-ngram 4"]]
    print("| text | drafts | tok/s | × plain (each round) | tokens per pass | right of checked | guessing |\n|---|---|---|---|---|---|---|")
    for name, text in texts().items():
        if options.text and name not in options.text:
            continue
        rounds = [[run(options, text, v) for v in variants] for _ in range(options.rounds)]
        tokens = {tuple(r["tokens"]) for results in rounds for r in results}
        if len(tokens) != 1:
            sys.exit(f"{name}: the variants generated {len(tokens)} different texts")
        for i, variant in enumerate(variants):
            stats = [results[i]["stats"] for results in rounds]
            plain = [results[0]["stats"]["decode_tokens_per_s"] for results in rounds]
            speed = [s["decode_tokens_per_s"] for s in stats]
            s = stats[0]
            ratios = " ".join(f"{a / b:.2f}" for a, b in zip(speed, plain)) if i else ""
            seconds = s["decode_tokens"] / s["decode_tokens_per_s"]
            print(f"| {name} | {' '.join(variant) or 'none'} | {statistics.median(speed):.1f} | {ratios} | "
                  f"{s['decode_tokens'] / s['decode_passes']:.2f} | {s['accepted_tokens']} / {s['drafted_tokens']} | "
                  f"{100 * s['draft_s'] / seconds:.1f} % |", flush=True)


main()
