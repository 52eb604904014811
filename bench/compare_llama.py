#!/usr/bin/env python3
"""Compares Ridge with llama.cpp on the same model and threads: runs of the two in turn, medians, and their ratio.

usage: compare_llama.py MODEL --ridge build/release/bin/ridge --llama-bench DIR/llama-bench [--threads 1 2] [--runs 3]

Prompt speed is of 512 tokens at once, decode speed of 64 tokens after an empty prompt's first one. The machine may be
noisy: trust the ratio, not the figures.
"""
import argparse
import json
import statistics
import subprocess

p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
p.add_argument("model")
p.add_argument("--ridge", required=True)
p.add_argument("--llama-bench", required=True)
p.add_argument("--threads", type=int, nargs="+", default=[1, 2])
p.add_argument("--prompt", type=int, default=512)
p.add_argument("--decode", type=int, default=64)
p.add_argument("--runs", type=int, default=3)
a = p.parse_args()


def text_of(tokens):
    """Some text of at least this many tokens, cut by the model's own tokenizer."""
    words = "the quick brown fox jumps over the lazy dog while rain falls on the old stone bridge and nobody looks up . " * 200
    ids = subprocess.run([a.ridge, "tokenize", a.model, words, "--no-special"], capture_output=True, text=True, check=True).stdout.split()
    return subprocess.run([a.ridge, "detokenize", a.model, *ids[:tokens]], capture_output=True, text=True, check=True).stdout


def ridge(threads, text):
    out = subprocess.run([a.ridge, "run", a.model, "--raw", "-p", text, "-n", str(a.decode + 1), "--ignore-eos", "--temp", "0", "--json",
                          "--threads", str(threads), "--context", str(a.prompt + a.decode + 64)], capture_output=True, text=True, check=True)
    stats = json.loads(out.stdout)["stats"]
    return stats["prompt_tokens_per_s"], stats["decode_tokens_per_s"]


def llama(threads):
    out = subprocess.run([a.llama_bench, "-m", a.model, "-p", str(a.prompt), "-n", str(a.decode), "-t", str(threads), "-r", "1", "-o", "json"],
                         capture_output=True, text=True, check=True)
    rows = json.loads(out.stdout)
    return tuple(next(r["avg_ts"] for r in rows if (r["n_prompt"] > 0) == is_prompt) for is_prompt in (True, False))


prompt_text, short = text_of(a.prompt), "the"
print(f"{'':22} {'ridge':>9} {'llama.cpp':>9} {'ratio':>6}   tok/s, medians of {a.runs}")
for threads in a.threads:
    mine, theirs = [], []
    for _ in range(a.runs):
        mine.append((ridge(threads, prompt_text)[0], ridge(threads, short)[1]))
        theirs.append(llama(threads))
    for i, what in enumerate((f"prefill {a.prompt}", f"decode {a.decode}")):
        m, t = statistics.median(r[i] for r in mine), statistics.median(r[i] for r in theirs)
        print(f"{what:14} {threads} thr  {m:9.1f} {t:9.1f} {m / t:6.2f}")
