#!/usr/bin/env python3
"""What a token touches of a sparse student, its neurons in the order of the file and by an importance map: one table.

usage: bench/relu_order.py STUDENT.gguf… --text CORPUS [--ridge PROGRAM] [--neurons 16] [--machine ethos-u65] [-n 100]

Maps are made of the first 200,000 characters of the text, and judged on what the student writes after twelve beginnings from its
last 40,000. Decode passes alone count. Prints Markdown.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("students", nargs="+")
    p.add_argument("--text", required=True)
    p.add_argument("--ridge", default=ROOT / "build/release/bin/ridge")
    p.add_argument("--neurons", default="16")
    p.add_argument("--machine", default="ethos-u65")
    p.add_argument("-n", type=int, default=100)
    a = p.parse_args()

    def call(*words):
        done = subprocess.run([str(a.ridge), *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"relu_order.py: {' '.join(map(str, words))}: {done.stderr}")
        return done.stdout

    text = pathlib.Path(a.text).read_text()
    begins = [line[:24] for line in text[-40000:].split("\n") if len(line) > 120][:12]
    print("| student | neurons | touched by a token | bundles read, KiB | DRAM, KB: nothing kept | pins |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        (work / "learn.txt").write_text(text[:200000])
        for student in a.students:
            call("importance", student, "--data", work / "learn.txt", "--window", 128, "--windows", 256, "--neurons", a.neurons,
                 "-o", work / "map.json")
            for order, words in (("as in the file", []), ("by touch", ["--map", work / "map.json"])):
                pack, visits = work / "student.ridge", work / "visits.json"
                call("pack", student, "-o", pack, "--neurons", a.neurons, *words)
                shares, kib, dram = [], [], []
                for begin in begins:
                    call("run", pack, "-p", begin, "--raw", "-n", a.n, "--temp", 0, "--ignore-eos", "--json", "--record", visits)
                    trace = json.loads(visits.read_text())
                    bundles = {i: b["storage_bytes"] for i, b in enumerate(trace["blocks"]) if b["name"].count(".") == 3}
                    trace["passes"] = trace["passes"][1:]  # the prompt is one
                    read = [[bundles[b] for b in visited if b in bundles] for visited in trace["passes"]]
                    shares.append(statistics.mean(map(len, read)) / len(bundles))
                    kib.append(statistics.mean(map(sum, read)) / 1024)
                    visits.write_text(json.dumps(trace))
                    rows = json.loads(call("sim", visits, "--machine", a.machine, "--json"))["rows"]
                    dram.append([row["dram_bytes"] / 1000 for row in rows])
                none, pins = (statistics.mean(column) for column in zip(*dram))
                print(f"| {pathlib.Path(student).parent.name} | {order} | {100 * statistics.mean(shares):.1f} % | {statistics.mean(kib):.0f} | {none:.0f} | {pins:.0f} |")


if __name__ == "__main__":
    main()
