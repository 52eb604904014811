#!/usr/bin/env python3
"""Compares `ridge image` with stable-diffusion.cpp: the same weights, prompt, size, steps and threads, in turn.

  bench/compare_stable_diffusion_cpp.py FOLDER [--size 512] [--steps 2] [--cfg 1] [-t 2] [--rounds 2] [--memory 2G]
                                        [-o results]

FOLDER is a bundle of Anima in its published names, such as scripts/make_random_anima.py writes. Finds sd-cli (--sd-cli,
PATH, or build/stable-diffusion.cpp) or builds it (bench/build_stable_diffusion_cpp.sh), and Ridge in build/release.
Prints a Markdown table; with -o NAME also writes NAME.md and NAME.json.

A round runs three programs once, the order alternating: Ridge with everything in memory, Ridge within --memory, and sd-cli
with --diffusion-fa, as its page about Anima says. Both sample with Euler. Times are those that the programs report;
"step" is sampling by the number of steps; peak memory is the largest resident set of the process, which leaves out the
page cache that sd-cli reads its files through and Ridge does not use. The pictures differ: GELU is another formula there,
and the two draw different noise.
"""
import argparse
import datetime
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROMPT = "red apple on a blue background"


def fail(message):
    sys.exit(f"compare_stable_diffusion_cpp: {message}")


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder", metavar="FOLDER", help="a bundle")
    p.add_argument("--size", type=int, default=512, help="of both sides")
    p.add_argument("--steps", type=int, default=2)
    p.add_argument("--cfg", type=float, default=1, help="guidance; 1: none, half the work")
    p.add_argument("-t", "--threads", type=int, default=len(os.sched_getaffinity(0)))
    p.add_argument("--rounds", type=int, default=2)
    p.add_argument("--memory", default="2G", help="of Ridge's second run")
    p.add_argument("--ridge", default=str(ROOT / "build/release/bin/ridge"))
    p.add_argument("--sd-cli", help="the program; default: found, or built")
    p.add_argument("-o", "--output", help="also write NAME.md and NAME.json")
    a = p.parse_args()
    if a.rounds < 1 or a.steps < 1 or a.threads < 1 or a.size < 16 or a.size % 16 != 0:
        p.error("give rounds, steps and threads from 1, and a size that is a multiple of 16")
    return a


def find_sd_cli(given):
    built_here = ROOT / "build/stable-diffusion.cpp/bin/sd-cli"
    for candidate in ([given] if given else [shutil.which("sd-cli"), str(built_here)]):
        if candidate and os.access(candidate, os.X_OK):
            return candidate
    if given:
        fail(f"{given} is no program")
    print("sd-cli is not here: building it (about 15 minutes)", file=sys.stderr)
    built = subprocess.run([ROOT / "bench/build_stable_diffusion_cpp.sh", ROOT / "build/stable-diffusion.cpp"],
                           stdout=subprocess.PIPE, text=True)
    if built.returncode != 0:
        fail("stable-diffusion.cpp could not be built; see above")
    return built.stdout.strip().splitlines()[-1] + "/sd-cli"


def part(folder, word):
    found = sorted(p for p in pathlib.Path(folder).glob("*.safetensors") if word in p.name)
    if not found:
        fail(f"{folder}: no .safetensors file has '{word}' in its name")
    return str(found[0])


def run(words):
    """Output, seconds, and the largest resident set in bytes."""
    with tempfile.TemporaryFile("w+") as out:
        start = time.monotonic()
        child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.monotonic() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        text = out.read()
    if child.returncode != 0:
        fail(f"{words[0]} ended with {child.returncode}: {text.strip()[-500:]}")
    return text, seconds, usage.ru_maxrss * 1024


def ridge(a, picture, memory):
    words = [a.ridge, "image", "--bundle", a.folder, "-p", PROMPT, "--size", f"{a.size}x{a.size}", "--steps",
             str(a.steps), "--cfg", f"{a.cfg:g}", "--sampler", "euler", "--seed", "1", "--threads", str(a.threads),
             "--json", "--quiet", "-o", picture]
    text, seconds, peak = run(words + (["--memory", memory] if memory else []))
    reported = json.loads(text[text.index("{"):])["seconds"]
    return {"text": reported["encode"] + reported["condition"], "step": reported["steps"] / a.steps,
            "vae": reported["decode"], "whole": seconds, "peak_bytes": peak}


def taken(text, what):
    found = re.search(what + r" completed, taking ([\d.]+)s", text)
    if not found:
        fail(f"sd-cli did not say '{what} completed'")
    return float(found.group(1))


def peer(a, picture):
    text, seconds, peak = run([a.sd_cli, "--diffusion-model", part(a.folder, "anima"), "--llm", part(a.folder, "qwen"),
                               "--vae", part(a.folder, "vae"), "-p", PROMPT, "-W", str(a.size), "-H", str(a.size),
                               "--steps", str(a.steps), "--cfg-scale", f"{a.cfg:g}", "--sampling-method", "euler",
                               "--seed", "1", "-t", str(a.threads), "--diffusion-fa", "-o", picture])
    return {"text": taken(text, "get_learned_condition"), "step": taken(text, "sampling") / a.steps,
            "vae": taken(text, "decode_first_stage"), "whole": seconds, "peak_bytes": peak}


def measure(a):
    sides = {"Ridge": lambda to: ridge(a, to, None), f"Ridge --memory {a.memory}": lambda to: ridge(a, to, a.memory),
             "stable-diffusion.cpp": lambda to: peer(a, to)}
    rounds = {name: [] for name in sides}
    with tempfile.TemporaryDirectory() as folder:
        for i in range(a.rounds):
            for name in list(sides) if i % 2 == 0 else reversed(list(sides)):
                print(f"round {i + 1} of {a.rounds}: {name}", file=sys.stderr)
                rounds[name].append(sides[name](os.path.join(folder, "out.png")))
    return rounds


def cpu_name():
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return os.uname().machine


def summary(a, rounds):
    theirs = rounds["stable-diffusion.cpp"]
    results = []
    for name, runs in rounds.items():
        row = {"program": name, "runs": runs}
        for key in runs[0]:
            row[key] = statistics.median(r[key] for r in runs)
        row["step_ratio"] = statistics.median(t["step"] / r["step"] for r, t in zip(runs, theirs))
        results.append(row)
    return {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"), "cpu": cpu_name(),
            "cpus": len(os.sched_getaffinity(0)), "threads": a.threads, "size": a.size, "steps": a.steps, "cfg": a.cfg,
            "ridge": run([a.ridge, "--version"])[0].strip(), "results": results,
            "command": f"bench/compare_stable_diffusion_cpp.py FOLDER --size {a.size} --steps {a.steps} --cfg {a.cfg:g} "
                       f"-t {a.threads} --rounds {a.rounds} --memory {a.memory}"}


def markdown(s):
    lines = ["| program | text | a step | VAE | whole run | peak memory | steps against the peer |",
             "|---|---|---|---|---|---|---|"]
    for r in s["results"]:
        lines.append(f"| {r['program']} | {r['text']:.1f} s | {r['step']:.1f} s | {r['vae']:.1f} s | {r['whole']:.0f} s "
                     f"| {r['peak_bytes'] / 2**30:.2f} GiB | **{r['step_ratio']:.2f}** × |")
    return "\n".join(lines + ["", f"{s['date']}, {s['cpu']} ({s['cpus']} CPUs), {s['ridge']}; `{s['command']}`. Medians "
                              "of the rounds; the ratio is of each round's pair."]) + "\n"


def main():
    a = arguments()
    if not os.path.exists(a.ridge):
        fail(f"{a.ridge} does not exist")
    a.sd_cli = find_sd_cli(a.sd_cli)
    result = summary(a, measure(a))
    text = markdown(result)
    print(text, end="")
    if a.output:
        pathlib.Path(a.output + ".md").write_text(text, encoding="utf-8")
        pathlib.Path(a.output + ".json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
