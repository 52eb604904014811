#!/usr/bin/env python3
"""Does distillation make a student's weights recur, and what does that spare of its memory traffic?

usage: bench/distill_experiment.py [--ridge PROGRAM] [--seeds 1,2,3] [--steps 300] [--teacher-steps 500] [--l1 1] [--full] [--relu-only] [--folder DIR] [--threads N]

Trains a teacher (SwiGLU, 1.37 M weights) and for each seed five students of 0.28 M: SwiGLU by cross-entropy and distilled, ReGLU by
cross-entropy, distilled, and distilled with L1 on its gates. The seed decides first weights and windows; all learn from one generated text
and are judged on its end, which none has seen. Blocks are 16 neurons; "sorted" ones by use in the text learned from. Prints Markdown: means
with 95 % intervals (Student's t over the seeds), the same of what changes from student to student within a seed, and the visits of the
sparse students replayed through every replacement policy (`ridge sim --policy all --train`), with the share of the gap from the best
classic policy to Belady's that `importance` closes. --full: 1400 steps, a teacher of 2000, five seeds. --relu-only leaves the SwiGLU students out.
Finished trainings in --folder are not repeated.
"""
import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
STUDENTS = {  # name: words
    "SwiGLU, CE": ["--ffn", "swiglu", "--kd", "0"],
    "SwiGLU, KD": ["--ffn", "swiglu"],
    "ReGLU, CE": ["--ffn", "reglu", "--kd", "0"],
    "ReGLU, KD": ["--ffn", "reglu"],
    "ReGLU, KD + L1": ["--ffn", "reglu", "--l1", "L1"],
}
CLASSIC = ["lru", "lfu", "slru", "arc", "sieve", "s3-fifo", "pin-worth"]
T95 = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365}  # two-sided, by number of seeds


def interval(values, form="{:.4f}"):
    mean = form.format(statistics.mean(values))
    if len(values) < 2 or len(values) not in T95:
        return mean
    half = T95[len(values)] * statistics.stdev(values) / math.sqrt(len(values))
    return f"{mean} ± {form.format(half)}"


def percent(values):
    return interval([100 * v for v in values], "{:.1f}")


def call(*words):
    done = subprocess.run([str(w) for w in words], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}: {done.stderr}")
    return done.stdout


def train(o, folder, words):
    """The report of a training, from the folder where it is finished."""
    report = folder / "report.json"
    if not report.exists():
        checkpoint = folder / "checkpoint.safetensors"
        resume = ["--resume"] if checkpoint.exists() else []
        more = ["--threads", o.threads] if o.threads else []
        text = call(o.ridge, "distill", o.folder / "stories.txt", "-o", folder, "--json", *words, *resume, *more)
        report.write_text(text)
    r = json.loads(report.read_text())
    print(f"{folder.name}: held out {r['held_out']:.4f}, {r['tokens'] / max(r['seconds'], 1e-9):,.0f} tokens/s", file=sys.stderr, flush=True)
    return r


def train_all(o):
    teacher = o.folder / "teacher"
    t = train(o, teacher, ["--dim", 160, "--ffn-dim", 480, "--steps", o.teacher_steps])
    students = {name: words for name, words in STUDENTS.items() if "reglu" in words or not o.relu_only}
    reports = {name: [] for name in students}
    for seed in o.seeds:
        for name, words in students.items():
            folder = o.folder / f"{name.replace(', ', '-').replace(' + ', '-')}-{seed}".lower()
            more = ["--record", folder / "visits"] if "reglu" in words else []
            folder.mkdir(exist_ok=True)
            words = [o.l1 if w == "L1" else w for w in words]
            reports[name].append(train(o, folder, [*words, "--teacher", teacher / "checkpoint.safetensors", "--steps", o.steps, "--seed", seed, *more]))
            reports[name][-1]["folder"] = folder
    return t, reports


def print_students(o, teacher, reports):
    tokens = o.steps * 16 * 128
    print(f"Teacher: {teacher['parameters']:,} weights, {teacher['tokens']:,} tokens, {teacher['held_out']:.4f} nats per byte. "
          f"Students: {reports['ReGLU, CE'][0]['parameters']:,} weights, {tokens:,} tokens, {len(o.seeds)} seeds.\n")
    print("| student | loss held out, nats per byte | neurons off, % | busiest 26 %: share of work, % | stays on, % | blocks of 16 touched, % | sorted, % | "
          "DRAM bytes cut, % | with SRAM of 10 %, % |")
    print("|---" * 9 + "|")
    for name, rows in reports.items():
        cells = [interval([r["held_out"] for r in rows])]
        if "gates" in rows[0]:
            cells += [percent([r["gates"][k] for r in rows]) for k in ("sparsity", "busiest_26_percent", "stays_on", "touched_natural", "touched_sorted",
                                                                       "dram_cut", "dram_cut_sram_10_percent")]
        else:
            cells += ["0", "–", "100", "100", "100", "0", "10"]
        print(f"| {name} | " + " | ".join(cells) + " |")


def print_differences(reports):
    print("\n| within a seed | |\n|---|---|")
    held = {name: [r["held_out"] for r in rows] for name, rows in reports.items()}
    gates = {name: [r["gates"]["sparsity"] for r in rows] for name, rows in reports.items() if "gates" in rows[0]}
    busiest = {name: [r["gates"]["busiest_26_percent"] for r in rows] for name, rows in reports.items() if "gates" in rows[0]}

    def change(a, b):
        return [y - x for x, y in zip(a, b)]

    print(f"| KD: neurons off, points (ReGLU) | {percent(change(gates['ReGLU, CE'], gates['ReGLU, KD']))} |")
    print(f"| KD: share of the busiest 26 %, points | {percent(change(busiest['ReGLU, CE'], busiest['ReGLU, KD']))} |")
    print(f"| KD: loss, nats (ReGLU) | {interval(change(held['ReGLU, CE'], held['ReGLU, KD']))} |")
    print(f"| L1: neurons off, points | {percent(change(gates['ReGLU, KD'], gates['ReGLU, KD + L1']))} |")
    worse = [y / x - 1 for x, y in zip(held["ReGLU, KD"], held["ReGLU, KD + L1"])]
    print(f"| L1: loss, % of that of ReGLU, KD | {percent(worse)} |")
    if "SwiGLU, CE" in held:
        print(f"| ReGLU, KD + L1 against SwiGLU, CE: loss, nats | {interval(change(held['SwiGLU, CE'], held['ReGLU, KD + L1']))} |")


def replay(o, folder, share):
    size = sum(b["memory_bytes"] for b in json.loads((folder / "visits.judge.json").read_text())["blocks"])
    report = json.loads(call(o.ridge, "sim", folder / "visits.judge.json", "--memory", int(size * share), "--policy", "all", "--train",
                             folder / "visits.train.json", "--json"))
    return {r["policy"]: r for r in report["rows"]}


def print_policies(o, reports):
    shown = CLASSIC + ["miss-cost", "importance", "belady"]
    print("\n| visits of | cache | " + " | ".join(shown) + " | of the gap |")
    print("|---" * (len(shown) + 3) + "|")
    for name in ("ReGLU, KD", "ReGLU, KD + L1"):
        for share in (0.25, 0.5):
            rows = [replay(o, r["folder"], share) for r in reports[name]]
            cells = [percent([r[p]["hit_bytes_ratio"] for r in rows]) for p in shown]
            # Where pins and Belady's policy hit the same to a thousandth, there is no gap to close.
            ways = [r["belady"]["hit_bytes_ratio"] - max(r[p]["hit_bytes_ratio"] for p in CLASSIC) for r in rows]
            gaps = [r["importance"]["gap_closed"] for r, way in zip(rows, ways) if way > 0.001]
            print(f"| {name} | {100 * share:g} % | " + " | ".join(cells) + f" | {percent(gaps) if gaps else 'no gap'} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ridge", default=ROOT / "build/release/bin/ridge")
    parser.add_argument("--seeds", default="")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--teacher-steps", type=int)
    parser.add_argument("--l1", default="1")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--relu-only", action="store_true")
    parser.add_argument("--threads")
    parser.add_argument("--folder", type=pathlib.Path)
    o = parser.parse_args()
    o.seeds = [int(s) for s in (o.seeds or ("1,2,3,4,5" if o.full else "1,2,3")).split(",")]
    o.steps = o.steps or (1400 if o.full else 300)
    o.teacher_steps = o.teacher_steps or (2000 if o.full else 500)
    with tempfile.TemporaryDirectory() as made:
        o.folder = o.folder or pathlib.Path(made)
        o.folder.mkdir(parents=True, exist_ok=True)
        call(o.ridge, "distill", "--make-corpus", o.folder / "stories.txt")
        teacher, reports = train_all(o)
        print_students(o, teacher, reports)
        print_differences(reports)
        print_policies(o, reports)


if __name__ == "__main__":
    main()
