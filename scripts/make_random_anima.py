#!/usr/bin/env python3
"""Writes an Anima of random weights in its real size: for speed and memory, not for pictures.

usage: make_random_anima.py FOLDER [--scale 1] [--layers 28] [--type bf16] [--seed 1]

FOLDER becomes a bundle for `ridge image --bundle`: diffusion transformer with text adapter (4.2 GB in bf16), text
encoder (1.2 GB) and VAE (0.25 GB) with the published names and shapes, and the tokenizers of demo/anima-mini, whose ids
are all in the vocabulary. --scale 8 divides widths, vocabularies and layers by 8. The same arguments give the same
bytes; they are written as they are made, 64 KiB at a time. Python's standard library is all it needs.
"""
import argparse
import json
import math
import os
import random
import shutil
import struct

DEMO = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../demo/anima-mini")
BYTES = {"bf16": 2, "f16": 2, "f32": 4}
POOL = 1 << 16  # different values; a tensor is a row of random pieces of them
PIECE = 1 << 15


class Values:
    """Normal values of one deviation as bytes."""

    def __init__(self, kind, seed):
        self.kind, self.rng = kind, random.Random(seed)
        self.unit = [self.rng.gauss(0, 1) for _ in range(POOL)]
        self.pools = {}

    def packed(self, values):
        if self.kind == "f16":
            return struct.pack(f"<{len(values)}e", *values)
        whole = struct.pack(f"<{len(values)}f", *values)
        if self.kind == "f32":
            return whole
        out = bytearray(len(whole) // 2)  # bf16: the upper halves
        out[0::2], out[1::2] = whole[2::4], whole[3::4]
        return bytes(out)

    def pool(self, deviation):
        if deviation not in self.pools:
            self.pools[deviation] = self.packed([deviation * v for v in self.unit])
        return self.pools[deviation]

    def pieces(self, count, deviation):
        """`count` values in pieces; deviation None: ones."""
        size = BYTES[self.kind]
        pool = self.packed([1.0] * PIECE) * 2 if deviation is None else self.pool(deviation)
        while count > 0:
            n = min(count, PIECE)
            at = self.rng.randrange(len(pool) // size - PIECE) if deviation is not None else 0
            yield pool[at * size:(at + n) * size]
            count -= n


class Tensors:
    """Names, shapes and deviations of one file."""

    def __init__(self):
        self.all = []

    def linear(self, name, rows, cols, damped=1.0):
        self.all.append((name + ".weight", (rows, cols), damped / math.sqrt(cols)))

    def embedding(self, name, rows, cols):
        self.all.append((name + ".weight", (rows, cols), 0.5))

    def ones(self, name, *shape):
        self.all.append((name, shape, None))

    def bias(self, name, count):
        self.all.append((name + ".bias", (count,), 0.01))

    def conv(self, name, outputs, inputs, *kernel, damped=1.0):
        deviation = damped * math.sqrt(1.6 / (inputs * kernel[-1] ** 2))
        self.all.append((name + ".weight", (outputs, inputs, *kernel), deviation))
        self.bias(name, outputs)

    def write(self, path, kind, values):
        header, at = {}, 0
        for name, shape, _ in self.all:
            size = math.prod(shape) * BYTES[kind]
            header[name] = {"dtype": kind.upper(), "shape": shape, "data_offsets": [at, at + size]}
            at += size
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        with open(path, "wb") as f:
            f.write(struct.pack("<Q", len(text)) + text)
            for _, shape, deviation in self.all:
                for piece in values.pieces(math.prod(shape), deviation):
                    f.write(piece)
        print(f"{path}: {8 + len(text) + at:,} bytes")


def attention(t, name, width, of_width, heads, dim, kv_heads=None, output="o_proj"):
    kv = (kv_heads or heads) * dim
    t.linear(name + ".q_proj", heads * dim, width)
    t.linear(name + ".k_proj", kv, of_width)
    t.linear(name + ".v_proj", kv, of_width)
    t.linear(f"{name}.{output}", width, heads * dim, damped=0.5)
    t.ones(name + ".q_norm.weight", dim)
    t.ones(name + ".k_norm.weight", dim)


def transformer(scale, layers, adapter_layers):
    width, rank, context = 2048 // scale, 256 // scale, 1024 // scale
    t = Tensors()
    t.linear("net.x_embedder.proj.1", width, 68)
    t.linear("net.t_embedder.1.linear_1", width, width)
    t.linear("net.t_embedder.1.linear_2", 3 * width, width)
    t.ones("net.t_embedding_norm.weight", width)
    for i in range(layers):
        block = f"net.blocks.{i}"
        for part in ("self_attn", "cross_attn", "mlp"):
            t.linear(f"{block}.adaln_modulation_{part}.1", rank, width)
            t.linear(f"{block}.adaln_modulation_{part}.2", 3 * width, rank, damped=0.3)
        attention(t, block + ".self_attn", width, width, width // 128, 128, output="output_proj")
        attention(t, block + ".cross_attn", width, context, width // 128, 128, output="output_proj")
        t.linear(block + ".mlp.layer1", 4 * width, width)
        t.linear(block + ".mlp.layer2", width, 4 * width, damped=0.5)
    t.linear("net.final_layer.adaln_modulation.1", rank, width)
    t.linear("net.final_layer.adaln_modulation.2", 2 * width, rank, damped=0.3)
    t.linear("net.final_layer.linear", 64, width)
    t.embedding("net.llm_adapter.embed", max(640, 32128 // scale), context)
    for i in range(adapter_layers):
        block = f"net.llm_adapter.blocks.{i}"
        for norm in ("norm_self_attn", "norm_cross_attn", "norm_mlp"):
            t.ones(f"{block}.{norm}.weight", context)
        attention(t, block + ".self_attn", context, context, context // 64, 64)
        attention(t, block + ".cross_attn", context, context, context // 64, 64)
        t.linear(block + ".mlp.0", 4 * context, context)
        t.bias(block + ".mlp.0", 4 * context)
        t.linear(block + ".mlp.2", context, 4 * context, damped=0.5)
        t.bias(block + ".mlp.2", context)
    t.linear("net.llm_adapter.out_proj", context, context)
    t.bias("net.llm_adapter.out_proj", context)
    t.ones("net.llm_adapter.norm.weight", context)
    return t


def encoder(scale, layers):
    width, ffn, heads = 1024 // scale, 3072 // scale, max(1, 16 // scale)
    t = Tensors()
    t.embedding("model.embed_tokens", max(1024, 151936 // scale), width)
    for i in range(layers):
        layer = f"model.layers.{i}"
        attention(t, layer + ".self_attn", width, width, heads, 128, max(1, heads // 2))
        t.linear(layer + ".mlp.gate_proj", ffn, width)
        t.linear(layer + ".mlp.up_proj", ffn, width)
        t.linear(layer + ".mlp.down_proj", width, ffn, damped=0.5)
        t.ones(layer + ".input_layernorm.weight", width)
        t.ones(layer + ".post_attention_layernorm.weight", width)
    t.ones("model.norm.weight", width)
    return t


def residual(t, name, inputs, outputs):
    t.ones(name + ".residual.0.gamma", inputs, 1, 1, 1)
    t.conv(name + ".residual.2", outputs, inputs, 3, 3, 3)
    t.ones(name + ".residual.3.gamma", outputs, 1, 1, 1)
    t.conv(name + ".residual.6", outputs, outputs, 3, 3, 3, damped=0.3)
    if inputs != outputs:
        t.conv(name + ".shortcut", outputs, inputs, 1, 1, 1)


def middle(t, name, channels):
    residual(t, name + ".0", channels, channels)
    t.ones(name + ".1.norm.gamma", channels, 1, 1)
    t.conv(name + ".1.to_qkv", 3 * channels, channels, 1, 1)
    t.conv(name + ".1.proj", channels, channels, 1, 1)
    residual(t, name + ".2", channels, channels)


def vae(scale):
    base = max(16, 96 // scale)
    t = Tensors()
    t.conv("conv1", 32, 32, 1, 1, 1)
    t.conv("conv2", 16, 16, 1, 1, 1)
    t.conv("encoder.conv1", base, 3, 3, 3, 3)
    channels, n = base, 0
    for stage, times in enumerate((1, 2, 4, 4)):
        for _ in range(2):
            residual(t, f"encoder.downsamples.{n}", channels, base * times)
            channels, n = base * times, n + 1
        if stage < 3:
            t.conv(f"encoder.downsamples.{n}.resample.1", channels, channels, 3, 3)
            if stage > 0:
                t.conv(f"encoder.downsamples.{n}.time_conv", channels, channels, 3, 1, 1)
            n += 1
    middle(t, "encoder.middle", channels)
    t.ones("encoder.head.0.gamma", channels, 1, 1, 1)
    t.conv("encoder.head.2", 32, channels, 3, 3, 3)
    t.conv("decoder.conv1", channels, 16, 3, 3, 3)
    middle(t, "decoder.middle", channels)
    n = 0
    for stage, times in enumerate((4, 4, 2, 1)):
        for _ in range(3):
            residual(t, f"decoder.upsamples.{n}", channels, base * times)
            channels, n = base * times, n + 1
        if stage < 3:
            if stage < 2:
                t.conv(f"decoder.upsamples.{n}.time_conv", 2 * channels, channels, 3, 1, 1)
            t.conv(f"decoder.upsamples.{n}.resample.1", channels // 2, channels, 3, 3)
            channels, n = channels // 2, n + 1
    t.ones("decoder.head.0.gamma", channels, 1, 1, 1)
    t.conv("decoder.head.2", 3, channels, 3, 3, 3)
    return t


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder")
    p.add_argument("--scale", type=int, default=1, choices=(1, 2, 4, 8, 16), help="divides sizes (%(default)s)")
    p.add_argument("--layers", type=int, help="of the transformer (28 / scale)")
    p.add_argument("--type", choices=sorted(BYTES), default="bf16")
    p.add_argument("--seed", type=int, default=1)
    a = p.parse_args()
    os.makedirs(a.folder, exist_ok=True)
    layers = a.layers or max(2, 28 // a.scale)
    parts = {"anima-random": transformer(a.scale, layers, max(2, 6 // a.scale)),
             "qwen3-random": encoder(a.scale, max(2, 28 // a.scale)),
             "vae-random": vae(a.scale)}
    values = Values(a.type, a.seed)
    for name, tensors in parts.items():
        tensors.write(os.path.join(a.folder, name + ".safetensors"), a.type, values)
    for name in ("tokenizer.json", "spiece.model"):
        shutil.copy(os.path.join(DEMO, name), a.folder)


if __name__ == "__main__":
    main()
