#!/usr/bin/env python3
"""Writes a llama model of random weights in one type, for measurements of speed.

usage: random_model.py OUT.gguf --type IQ2_XXS [--layers 22] [--dim 2048] [--ffn 5632] [--heads 32] [--kv-heads 4]
                       [--activation silu|relu|relu2] [--experts N --used K]

The values mean nothing; shapes, types and bytes are those of a model of 1 billion weights. Embedding and head are Q8_0.
--activation relu makes a reglu-llama, relu2 an arcee (without gate matrices). The same arguments give the same bytes.
"""
import argparse
import pathlib
import random
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests/cli"))
from gguf_files import Gguf  # noqa: E402

# type: number in GGUF, weights and bytes of a block, where its f16 scales are, and the scale that makes weights of size 1
TYPES = {
    "IQ1_S": (19, 256, 50, (0,), 0.14), "IQ1_M": (29, 256, 56, None, 0.14), "IQ2_XXS": (16, 256, 66, (0,), 0.02),
    "IQ2_XS": (17, 256, 74, (0,), 0.02), "IQ2_S": (22, 256, 82, (0,), 0.02), "IQ3_XXS": (18, 256, 98, (0,), 0.007),
    "IQ3_S": (21, 256, 110, (0,), 0.007), "TQ1_0": (34, 256, 54, (52,), 1.2), "TQ2_0": (35, 256, 66, (64,), 1.2),
    "Q8_0": (8, 32, 34, (0,), 0.014), "Q4_0": (2, 32, 18, (0,), 0.2), "Q4_K": (12, 256, 144, (0, 2), 0.004),
    "Q5_K": (13, 256, 176, (0, 2), 0.002), "Q6_K": (14, 256, 210, (208,), 0.002),
}

p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
p.add_argument("out")
p.add_argument("--type", choices=sorted(TYPES), required=True)
p.add_argument("--layers", type=int, default=22)
p.add_argument("--dim", type=int, default=2048)
p.add_argument("--ffn", type=int, default=5632)
p.add_argument("--heads", type=int, default=32)
p.add_argument("--kv-heads", type=int, default=4)
p.add_argument("--vocab", type=int, default=4096)
p.add_argument("--experts", type=int, default=0, help="of every layer, each with --ffn neurons; routers are random")
p.add_argument("--used", type=int, default=2)
p.add_argument("--activation", choices=("silu", "relu", "relu2"), default="silu")
a = p.parse_args()
arch = {"silu": "llama", "relu": "reglu-llama", "relu2": "arcee"}[a.activation]
if a.experts and arch != "llama":
    sys.exit("--experts: experts are for --activation silu")

rng = random.Random(1)
g = Gguf()


def blocks(rows, cols, kind):
    number, weights, size, scales, unit = TYPES[kind]
    half = struct.pack("<e", unit / cols ** 0.5)
    data = bytearray(rng.randbytes(rows * cols // weights * size))
    if scales is None:  # IQ1_M: the top nibbles of the last four 16-bit words
        for k in range(4):
            nibble = (int.from_bytes(half, "little") >> (4 * k)) & 15
            table = bytes((b & 15) | nibble << 4 for b in range(256))
            data[49 + 2 * k::size] = data[49 + 2 * k::size].translate(table)
        return data
    count = len(data) // size
    for at in scales:
        data[at::size], data[at + 1::size] = half[:1] * count, half[1:] * count
    return data


def linear(name, rows, cols, kind=a.type):
    g.tensors.append([name, [cols, rows], TYPES[kind][0], bytes(blocks(rows, cols, kind))])


def norm(name):
    g.tensors.append([name, [a.dim], 0, struct.pack(f"<{a.dim}f", *[1.0] * a.dim)])


plain = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or 174 <= b <= 255]
other = iter(range(256, 512))
tokens = [chr(b) if b in plain else chr(next(other)) for b in range(256)] + ["th"]
tokens += [f"<t{i}>" for i in range(257, a.vocab)]
g.keys = {"general.architecture": arch, "general.name": f"random {a.type}", f"{arch}.block_count": a.layers,
          f"{arch}.context_length": 4096, f"{arch}.embedding_length": a.dim, f"{arch}.feed_forward_length": a.ffn,
          f"{arch}.attention.head_count": a.heads, f"{arch}.attention.head_count_kv": a.kv_heads,
          f"{arch}.attention.layer_norm_rms_epsilon": 1e-5, f"{arch}.rope.dimension_count": a.dim // a.heads,
          f"{arch}.rope.freq_base": 10000.0, f"{arch}.vocab_size": a.vocab, "tokenizer.ggml.model": "gpt2",
          "tokenizer.ggml.pre": "gpt-2", "tokenizer.ggml.tokens": tokens,
          "tokenizer.ggml.token_type": [1] * 257 + [3] * (a.vocab - 257), "tokenizer.ggml.merges": ["t h"],
          "tokenizer.ggml.bos_token_id": 257, "tokenizer.ggml.eos_token_id": 258}
if a.experts:
    g.keys.update({f"{arch}.expert_count": a.experts, f"{arch}.expert_used_count": a.used})
kv = a.dim // a.heads * a.kv_heads
linear("token_embd.weight", a.vocab, a.dim, "Q8_0")
for i in range(a.layers):
    b = f"blk.{i}."
    norm(b + "attn_norm.weight")
    linear(b + "attn_q.weight", a.dim, a.dim)
    linear(b + "attn_k.weight", kv, a.dim)
    linear(b + "attn_v.weight", kv, a.dim)
    linear(b + "attn_output.weight", a.dim, a.dim)
    norm(b + "ffn_norm.weight")
    if a.experts:
        router = [rng.gauss(0, 1) for _ in range(a.experts * a.dim)]
        g.tensors.append([b + "ffn_gate_inp.weight", [a.dim, a.experts], 0, struct.pack(f"<{len(router)}f", *router)])
        for name, rows, cols in (("gate", a.ffn, a.dim), ("up", a.ffn, a.dim), ("down", a.dim, a.ffn)):
            g.tensors.append([b + f"ffn_{name}_exps.weight", [cols, rows, a.experts], TYPES[a.type][0],
                              bytes(blocks(a.experts * rows, cols, a.type))])
        continue
    if arch != "arcee":
        linear(b + "ffn_gate.weight", a.ffn, a.dim)
    linear(b + "ffn_up.weight", a.ffn, a.dim)
    linear(b + "ffn_down.weight", a.dim, a.ffn)
norm("output_norm.weight")
linear("output.weight", a.vocab, a.dim, "Q8_0")
with open(a.out, "wb") as out:
    out.write(g.bytes())
