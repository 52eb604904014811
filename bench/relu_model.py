#!/usr/bin/env python3
"""Writes a random reglu-llama whose gates replay a given pattern, for measurements of skipped neurons.

usage: relu_model.py OUT.gguf [--pattern l1 | --trace visits.json] [--text FILE] [--dense] [--layers 32] [--dim 1024] [--ffn 4096]

Weights are Q8_0 and random, but for what makes the pattern: the first 256 numbers of the hidden state say which byte is
the present token (no other weight writes to them), the head answers byte b with b + 1, and row n of a gate matrix is
positive where neuron n fires at that byte. So decoding from any text with --temp 0 walks through 256 steps of the pattern,
one after the other, and every neuron fires exactly where the pattern says.

A bundle of 64 neurons stands for a block of 16 neurons of a small student. --pattern makes the student's trace
(bench/relu_traces.py: synthetic); --trace takes one that `ridge run --record` or a trainer wrote, whose blocks are named
"….ffn.…". Each layer replays it from another token on. --dense writes a llama of the same shapes and bytes, for
comparison. The same arguments give the same bytes. Needs numpy.
"""
import argparse
import json
import pathlib
import struct
import sys

try:
    import numpy as np
except ImportError:
    np = None

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests/cli"))
sys.path.insert(0, str(HERE))
from gguf_files import Gguf  # noqa: E402
import relu_traces  # noqa: E402

STEPS, BUNDLE, STUDENT_BLOCK = 256, 64, 16
Q8_0 = 8


def q8_0(codes, scale):
    """[rows, cols] of int8 → blocks of 32 with one scale."""
    rows, cols = codes.shape
    out = np.empty((rows, cols // 32, 34), np.uint8)
    out[:, :, :2] = np.frombuffer(struct.pack("<e", scale), np.uint8)
    out[:, :, 2:] = codes.astype(np.int8).view(np.uint8).reshape(rows, cols // 32, 32)
    return out.tobytes()


def student_blocks(args):
    """[tokens, blocks] of bool: what a student's tokens touch, all its layers side by side; and what fires, [tokens, neurons]
    (of a trace, which knows blocks alone, every neuron of a touched block)."""
    if args.trace:
        trace = json.loads(pathlib.Path(args.trace).read_text())
        ours = [i for i, b in enumerate(trace["blocks"]) if ".ffn." in b["name"]]
        column = {block: n for n, block in enumerate(ours)}
        passes = trace["passes"]
        if not ours or len(passes) < STEPS:
            sys.exit(f"{args.trace}: expected blocks named '.ffn.' and at least {STEPS} passes")
        touched = np.zeros((len(passes), len(ours)), bool)
        for t, blocks in enumerate(passes):
            touched[t, [column[b] for b in blocks if b in column]] = True
        return np.repeat(touched, STUDENT_BLOCK, axis=1)
    text = pathlib.Path(args.text).read_bytes()
    judged, calibration = text[: 4 * STEPS], text[4 * STEPS: 4 * STEPS + 16384]
    on = relu_traces.fires(judged, calibration, relu_traces.STUDENTS[args.pattern])
    if args.sorted:
        order = relu_traces.by_frequency(relu_traces.fires(calibration, calibration, relu_traces.STUDENTS[args.pattern]))
        on = np.take_along_axis(on, np.broadcast_to(order[None], on.shape), axis=2)
    return on.reshape(len(on), -1)


def gates(on, layer, ffn):
    """[ffn, STEPS] of bool: when each neuron of the layer fires."""
    steps = (np.arange(STEPS) + 61 * layer) % len(on)
    per_student = BUNDLE // STUDENT_BLOCK
    student = np.arange(ffn) // per_student % on.shape[1]
    return on[steps][:, student].T


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out")
    p.add_argument("--pattern", choices=sorted(relu_traces.STUDENTS), default="l1")
    p.add_argument("--trace")
    p.add_argument("--text", default=str(HERE.parent / "docs/streaming.md"))
    p.add_argument("--sorted", action="store_true", help="the student's neurons by frequency, as packing by a map orders them")
    p.add_argument("--dense", action="store_true")
    p.add_argument("--layers", type=int, default=32)
    p.add_argument("--dim", type=int, default=1024)
    p.add_argument("--ffn", type=int, default=4096)
    p.add_argument("--heads", type=int, default=16)
    p.add_argument("--kv-heads", type=int, default=4)
    a = p.parse_args()
    if np is None:
        sys.exit("relu_model.py: needs numpy: pip install numpy")
    arch = "llama" if a.dense else "reglu-llama"
    rng = np.random.default_rng(1)
    on = student_blocks(a)
    g = Gguf()
    plain = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or 174 <= b <= 255]
    other = iter(range(256, 512))
    tokens = [chr(b) if b in plain else chr(next(other)) for b in range(256)] + ["th", "<s>", "</s>"]
    tokens += [f"<t{i}>" for i in range(len(tokens), 320)]
    # Token numbers of byte-level vocabularies are what the head counts through.
    g.keys = {"general.architecture": arch, "general.name": f"random, gates of {a.trace or a.pattern}",
              f"{arch}.block_count": a.layers, f"{arch}.context_length": 4096, f"{arch}.embedding_length": a.dim,
              f"{arch}.feed_forward_length": a.ffn, f"{arch}.attention.head_count": a.heads,
              f"{arch}.attention.head_count_kv": a.kv_heads, f"{arch}.attention.layer_norm_rms_epsilon": 1e-5,
              f"{arch}.rope.dimension_count": a.dim // a.heads, f"{arch}.rope.freq_base": 10000.0,
              f"{arch}.vocab_size": len(tokens), "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2",
              "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": [1] * 257 + [3] * (len(tokens) - 257),
              "tokenizer.ggml.merges": ["t h"], "tokenizer.ggml.bos_token_id": 257, "tokenizer.ggml.eos_token_id": 258}
    scale = 1 / (73 * a.dim ** 0.5)

    def matrix(name, codes, s=scale):
        g.tensors.append([name, [codes.shape[1], codes.shape[0]], Q8_0, q8_0(codes, s)])

    def random(rows, cols, keeps_state=False):
        codes = rng.integers(-127, 128, (rows, cols), dtype=np.int16)
        if keeps_state:
            codes[:STEPS] = 0
        return codes

    def norm(name):
        g.tensors.append([name, [a.dim], 0, np.ones(a.dim, np.float32).tobytes()])

    embedding = random(len(tokens), a.dim) // 16
    embedding[:, :STEPS] = 0
    embedding[np.arange(STEPS), np.arange(STEPS)] = 127
    matrix("token_embd.weight", embedding, 0.1)
    kv = a.dim // a.heads * a.kv_heads
    for i in range(a.layers):
        b = f"blk.{i}."
        norm(b + "attn_norm.weight")
        matrix(b + "attn_q.weight", random(a.dim, a.dim))
        matrix(b + "attn_k.weight", random(kv, a.dim))
        matrix(b + "attn_v.weight", random(kv, a.dim))
        matrix(b + "attn_output.weight", random(a.dim, a.dim, True))
        norm(b + "ffn_norm.weight")
        gate = np.zeros((a.ffn, a.dim), np.int16)
        gate[:, :STEPS] = np.where(gates(on, i, a.ffn), 16, -16)
        matrix(b + "ffn_gate.weight", gate)
        matrix(b + "ffn_up.weight", random(a.ffn, a.dim))
        matrix(b + "ffn_down.weight", random(a.dim, a.ffn, True))
    norm("output_norm.weight")
    head = np.zeros((len(tokens), a.dim), np.int16)
    head[(np.arange(STEPS) + 1) % STEPS, np.arange(STEPS)] = 127
    matrix("output.weight", head)
    with open(a.out, "wb") as out:
        out.write(g.bytes())


if __name__ == "__main__":
    main()
