#!/usr/bin/env python3
"""Makes tests/data/models/{smollm3,granite,minicpm,reglu-llama,arcee}.gguf: tiny random models of architectures that the
reference data lacks. Needs numpy and the `gguf` package. Their logits (.f32 beside them, [tokens, vocabulary]) are for the
tokens below. Those of the first three came from llama.cpp with F32 caches and one thread; those of reglu-llama, which it
does not know, and arcee come from relu_logits() here, in double precision:

    make_plain_fixtures.py tests/data/models
"""
import sys

import gguf
import numpy as np

TOKENS = [1, 17, 40, 5, 9, 33, 2, 2, 47, 20, 0, 45, 46, 12, 39, 3]  # as plain_fixtures_test.cpp has them
WIDTH, FFN, HEADS, KV_HEADS, VOCABULARY, CONTEXT = 32, 48, 4, 2, 48, 64
HEAD = WIDTH // HEADS


def write(path, architecture, layers, add_keys):
    """Returns the tensors by name."""
    rng = np.random.default_rng(7)
    w = gguf.GGUFWriter(path, architecture)
    w.add_name("random")
    w.add_block_count(layers)
    w.add_context_length(CONTEXT)
    w.add_embedding_length(WIDTH)
    w.add_feed_forward_length(FFN)
    w.add_head_count(HEADS)
    w.add_head_count_kv(KV_HEADS)
    w.add_layer_norm_rms_eps(1e-5)
    w.add_rope_dimension_count(HEAD)
    w.add_rope_freq_base(10000.0)
    w.add_vocab_size(VOCABULARY)
    w.add_tokenizer_model("no_vocab")
    add_keys(w)

    tensors = {}

    def add(name, values):
        tensors[name] = values.astype(np.float32)
        w.add_tensor(name, tensors[name])

    def matrix(name, rows, cols):
        add(name, rng.normal(0, cols ** -0.5, (rows, cols)))

    def norm(name):
        add(name, rng.uniform(0.5, 1.5, WIDTH))

    matrix("token_embd.weight", VOCABULARY, WIDTH)
    for i in range(layers):
        norm(f"blk.{i}.attn_norm.weight")
        matrix(f"blk.{i}.attn_q.weight", HEADS * HEAD, WIDTH)
        matrix(f"blk.{i}.attn_k.weight", KV_HEADS * HEAD, WIDTH)
        matrix(f"blk.{i}.attn_v.weight", KV_HEADS * HEAD, WIDTH)
        matrix(f"blk.{i}.attn_output.weight", WIDTH, HEADS * HEAD)
        norm(f"blk.{i}.ffn_norm.weight")
        if architecture != "arcee":
            matrix(f"blk.{i}.ffn_gate.weight", FFN, WIDTH)
        matrix(f"blk.{i}.ffn_up.weight", FFN, WIDTH)
        matrix(f"blk.{i}.ffn_down.weight", WIDTH, FFN)
    norm("output_norm.weight")
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    return tensors


def rms_norm(x, weight):
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-5) * weight


def angles(yarn):
    """Angle by position and pair, and the factor of cosine and sine. yarn: (factor, original context) or None."""
    pairs = np.arange(HEAD // 2)
    frequency = 10000.0 ** (-2.0 * pairs / HEAD)
    if yarn is None:
        return np.outer(np.arange(len(TOKENS)), frequency), 1.0
    factor, original = yarn
    low, high = (HEAD * np.log(original / (turns * 2 * np.pi)) / (2 * np.log(10000.0)) for turns in (32.0, 1.0))
    low, high = max(0.0, np.floor(low)), min(HEAD - 1.0, np.ceil(high))
    keep = 1 - np.clip((pairs - low) / max(0.001, high - low), 0, 1)
    return np.outer(np.arange(len(TOKENS)), frequency * (keep + (1 - keep) / factor)), 1 + 0.1 * np.log(factor)


def rotate(x, yarn):
    """[tokens, heads, HEAD]; pairs are neighbours."""
    angle, factor = angles(yarn)
    cos, sin = np.cos(angle)[:, None] * factor, np.sin(angle)[:, None] * factor
    out = np.empty_like(x)
    out[..., 0::2] = x[..., 0::2] * cos - x[..., 1::2] * sin
    out[..., 1::2] = x[..., 0::2] * sin + x[..., 1::2] * cos
    return out


def relu_logits(tensors, layers, gated, yarn=None):
    t = {name: values.astype(np.float64) for name, values in tensors.items()}
    x = t["token_embd.weight"][TOKENS]
    visible = np.tril(np.ones((len(TOKENS), len(TOKENS)), bool))
    for i in range(layers):
        w = {name.split(".")[2]: values for name, values in t.items() if name.startswith(f"blk.{i}.")}
        h = rms_norm(x, w["attn_norm"])
        q, k, v = ((h @ w[f"attn_{n}"].T).reshape(len(TOKENS), -1, HEAD) for n in "qkv")
        q, k = rotate(q, yarn), rotate(k, yarn)
        mixed = np.empty_like(q)
        for head in range(HEADS):
            group = head // (HEADS // KV_HEADS)
            scores = np.where(visible, q[:, head] @ k[:, group].T / np.sqrt(HEAD), -np.inf)
            scores = np.exp(scores - scores.max(axis=1, keepdims=True))
            mixed[:, head] = scores / scores.sum(axis=1, keepdims=True) @ v[:, group]
        x = x + mixed.reshape(len(TOKENS), -1) @ w["attn_output"].T
        h = rms_norm(x, w["ffn_norm"])
        hidden = np.maximum(h @ w["ffn_gate"].T, 0) * (h @ w["ffn_up"].T) if gated else np.maximum(h @ w["ffn_up"].T, 0) ** 2
        x = x + hidden @ w["ffn_down"].T
    head = t["output.weight"] if "output.weight" in t else t["token_embd.weight"]
    return rms_norm(x, t["output_norm.weight"]) @ head.T


def scales(architecture, embedding, residual, logits, attention=None):
    def add(w):
        w.add_float32(f"{architecture}.embedding_scale", embedding)
        w.add_float32(f"{architecture}.residual_scale", residual)
        w.add_float32(f"{architecture}.logit_scale", logits)
        if attention is not None:
            w.add_float32(f"{architecture}.attention.scale", attention)
    return add


def add_yarn(w, factor, original):
    w.add_rope_scaling_type(gguf.RopeScalingType.YARN)
    w.add_rope_scaling_factor(factor)
    w.add_rope_scaling_orig_ctx_len(original)


def main():
    folder = sys.argv[1]
    write(f"{folder}/smollm3.gguf", "smollm3", 5, lambda w: None)
    write(f"{folder}/granite.gguf", "granite", 2, scales("granite", 6.0, 0.22, 4.0, 0.3))
    write(f"{folder}/minicpm.gguf", "minicpm", 2, scales("minicpm", 12.0, 0.7, 3.0))
    reglu = write(f"{folder}/reglu-llama.gguf", "reglu-llama", 2, lambda w: None)
    relu_logits(reglu, 2, gated=True).astype(np.float32).tofile(f"{folder}/reglu-llama.f32")
    yarn = (4.0, 8)
    arcee = write(f"{folder}/arcee.gguf", "arcee", 2, lambda w: add_yarn(w, *yarn))
    relu_logits(arcee, 2, gated=False, yarn=yarn).astype(np.float32).tofile(f"{folder}/arcee.f32")


if __name__ == "__main__":
    main()
