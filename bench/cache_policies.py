#!/usr/bin/env python3
"""Replays traces of blocks through every replacement policy, with pins and parameters chosen on other text than is judged.

usage: bench/cache_policies.py [--ridge PROGRAM] [--model EXPERTS.gguf]... [--only WORD] [--tokens 4096] [--train-tokens 8192]
                               [--share 0.25]... [--folder DIR]

Traces: synthetic ones of ReLU students (bench/relu_traces.py: no student is trained), one task or two that alternate; a cyclic one; one of experts at random;
and recorded ones (`ridge run --record`) of a small model with random experts and of each --model with experts. The texts are this repository's: half of its
pages and half of its sources to learn from, the others to judge on. Prints a Markdown table: hit bytes of each policy as shares
of all that is asked for, and the share of the gap from the best classic policy to Belady's that `importance` closes; the same of hits when it
reads ahead, which spares no reading: what it reads is printed beside.
Needs numpy. Deterministic, but for the repository's texts.
"""
import argparse
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import relu_traces

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/cli"))
import gguf_files  # noqa: E402

SHOWN = ["lru", "lfu", "slru", "arc", "sieve", "s3-fifo", "pin-worth", "miss-cost", "importance", "belady"]
SEGMENT = 256  # bytes of one task before the other takes over


def texts(pattern):
    """Two texts: of every other file, and of the rest."""
    files = sorted(ROOT.glob(pattern))
    return [b"\n".join(f.read_bytes() for f in files[i::2]) for i in range(2)]


def spread(text, length):
    """So many bytes from all over the text, in pieces."""
    pieces = 16
    step = len(text) // pieces
    return b"".join(text[i * step: i * step + length // pieces] for i in range(pieces))


def alternating(a, b, length):
    return b"".join((b if i // SEGMENT % 2 else a)[i: i + SEGMENT] for i in range(0, length, SEGMENT))


def relu(folder, name, student, block, train, judged):
    """Neurons are packed by their frequency in the training text, as packing by the importance map does."""
    on = relu_traces.fires(train, train, student)
    order = relu_traces.by_frequency(on)
    blocks = relu_traces.neuron_blocks(block)
    paths = []
    for kind, fires in (("train", on), ("judged", relu_traces.fires(judged, train, student))):
        paths.append(folder / f"{name.replace(' ', '-')}-{kind}.json")
        relu_traces.write_visits(paths[-1], f"synthetic {name}", blocks, relu_traces.blocks_of(fires, order, block))
    return paths


def synthetic(folder, options):
    pages, sources = texts("docs/*.md"), texts("src/*/*.cpp")
    train, judged = spread(pages[0], options.train_tokens), spread(pages[1], options.tokens)
    mixed = [alternating(spread(pages[i], n), spread(sources[i], n), n) for i, n in ((0, options.train_tokens), (1, options.tokens))]
    students = relu_traces.STUDENTS
    for key, block in (("l1", 1), ("l1", 16), ("strong-l1", 1), ("strong-l1", 16), ("plain", 16)):
        name = f"relu {key} {block}"
        yield name, lambda n=name, k=key, b=block: relu(folder, n, students[k], b, train, judged)
    for block in (1, 16):
        name = f"mixed tasks l1 {block}"
        yield name, lambda n=name, b=block: relu(folder, n, students["l1"], b, *mixed)

    def cyclic():
        blocks = [(f"blk.{i}", 1000 + 500 * (i % 3)) for i in range(84)]
        paths = [folder / "cyclic-train.json", folder / "cyclic-judged.json"]
        for path, passes in zip(paths, (20, 60)):
            relu_traces.write_visits(path, "synthetic cyclic", blocks, [list(range(84))] * passes)
        return paths
    yield "cyclic", cyclic

    def uniform():
        blocks = [(f"blk.{layer}.ffn.{e}", 1000) for layer in range(4) for e in range(32)]
        paths = [folder / "uniform-train.json", folder / "uniform-judged.json"]
        for path, seed, tokens in zip(paths, (1, 2), (options.train_tokens, options.tokens)):
            rng = random.Random(seed)
            relu_traces.write_visits(path, "synthetic experts", blocks,
                                     [[32 * la + e for la in range(4) for e in sorted(rng.sample(range(32), 2))] for _ in range(tokens)])
        return paths
    yield "experts at random", uniform


def recorded(folder, model, options):
    """Of two texts, one to learn from."""
    paths = []
    for kind, text in zip(("train", "judged"), texts("docs/*.md")):
        paths.append(folder / f"{pathlib.Path(model).stem}-{kind}.json")
        words = [options.ridge, "run", model, "--raw", "-p", spread(text.replace(b"\0", b" "), 96).decode("ascii", "ignore"), "-n", "150", "--temp", "300", "--top-k", "0", "--top-p", "1",
                 "--seed", "1", "--ignore-eos", "-q", "--context", "256", "--record", paths[-1]]
        subprocess.run([str(w) for w in words], check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    for path in paths:  # experts alone: all else is visited by every token, and pinned before them
        trace = json.loads(path.read_text())
        keep = {i: n for n, i in enumerate(i for i, b in enumerate(trace["blocks"]) if re.search(r"\.ffn\.\d+/", b["name"]))}
        trace["blocks"] = [trace["blocks"][i] for i in keep]
        trace["passes"] = [[keep[b] for b in p if b in keep] for p in trace["passes"][1:]]  # the first is the prompt's
        path.write_text(json.dumps(trace))
    return paths


def random_experts(folder):
    """A byte-level model whose routers are random: 4 layers of 32 experts, two of which are used."""
    path = folder / "random-experts.gguf"
    path.write_bytes(gguf_files.tiny(layers=4, dim=64, ffn=32, experts=32).bytes())
    return path


def replay(options, trace, capacity, *more):
    done = subprocess.run([str(w) for w in (options.ridge, "sim", trace, "--memory", capacity, "--json", *more)], capture_output=True,
                          text=True)
    if done.returncode != 0:
        sys.exit(f"{trace}: {done.stderr}")
    return json.loads(done.stdout)


def judge(options, name, train, judged):
    size = sum(b["memory_bytes"] for b in json.loads(judged.read_text())["blocks"])
    for share in options.share:
        report = replay(options, judged, int(size * share), "--train", train)
        rows = {r["policy"]: r for r in report["rows"]}
        own = replay(options, judged, int(size * share), "--policy", "pin-worth")["rows"][0]["hit_bytes_ratio"]
        gap, ahead = rows["importance"].get("gap_closed"), rows["importance-ahead"]
        best = max(r["hit_bytes_ratio"] for p, r in rows.items() if p in SHOWN[:7])
        way = rows["belady"]["hit_bytes_ratio"] - best
        cells = [f"{100 * rows[p]['hit_bytes_ratio']:.1f}" for p in SHOWN]
        cells.append("no gap" if gap is None or way <= 0.001 else f"{100 * gap:.1f} %")
        total = rows["lru"]["hit_bytes"] / rows["lru"]["hit_bytes_ratio"] if rows["lru"]["hit_bytes"] else None
        total = total or rows["belady"]["hit_bytes"] / rows["belady"]["hit_bytes_ratio"]
        cells.append(f"{100 * ahead['hit_bytes_ratio']:.1f} (+{100 * ahead['read_ahead_bytes'] / total:.1f} read)")
        cells.append(f"{100 * (ahead['hit_bytes_ratio'] - best) / way:.1f} %" if gap is not None and way > 0.001 else "no gap")
        touched = report["visits"] / report["passes"] / report["blocks"]
        print(f"| {name} | {100 * share:g} % | {100 * touched:.1f} % | " + " | ".join(cells) + f" | {100 * own:.1f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ridge", default=ROOT / "build/release/bin/ridge")
    parser.add_argument("--model", action="append", default=[])
    parser.add_argument("--only", default="")
    parser.add_argument("--tokens", type=int, default=4096)
    parser.add_argument("--train-tokens", type=int, default=8192)
    parser.add_argument("--share", type=float, action="append")
    parser.add_argument("--folder", type=pathlib.Path)
    options = parser.parse_args()
    options.share = options.share or [0.25, 0.5]
    with tempfile.TemporaryDirectory() as made:
        folder = options.folder or pathlib.Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        print("| trace | cache | touched | " + " | ".join(SHOWN) + " | of gap | importance-ahead | of gap in hits | pin-worth, in sample |")
        print("|---" * (len(SHOWN) + 7) + "|")
        traces = list(synthetic(folder, options))
        traces.append(("recorded random experts", lambda: recorded(folder, random_experts(folder), options)))
        traces += [(f"recorded {pathlib.Path(m).stem}", lambda m=m: recorded(folder, m, options)) for m in options.model]
        for name, make in traces:
            if options.only in name:
                judge(options, name, *make())


if __name__ == "__main__":
    main()
