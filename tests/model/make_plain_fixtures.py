#!/usr/bin/env python3
"""Makes tests/data/models/{smollm3,granite,minicpm}.gguf: tiny random models of architectures that the reference data
lacks. Needs numpy and the `gguf` package. Their logits (.f32 beside them, [tokens, vocabulary]) came from llama.cpp
with F32 caches and one thread, for the tokens below:

    make_plain_fixtures.py tests/data/models
"""
import sys

import gguf
import numpy as np

TOKENS = [1, 17, 40, 5, 9, 33, 2, 2, 47, 20, 0, 45, 46, 12, 39, 3]  # as plain_fixtures_test.cpp has them
WIDTH, FFN, HEADS, KV_HEADS, VOCABULARY, CONTEXT = 32, 48, 4, 2, 48, 64
HEAD = WIDTH // HEADS


def write(path, architecture, layers, add_keys):
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

    def matrix(name, rows, cols):
        w.add_tensor(name, rng.normal(0, cols ** -0.5, (rows, cols)).astype(np.float32))

    def norm(name):
        w.add_tensor(name, rng.uniform(0.5, 1.5, WIDTH).astype(np.float32))

    matrix("token_embd.weight", VOCABULARY, WIDTH)
    for i in range(layers):
        norm(f"blk.{i}.attn_norm.weight")
        matrix(f"blk.{i}.attn_q.weight", HEADS * HEAD, WIDTH)
        matrix(f"blk.{i}.attn_k.weight", KV_HEADS * HEAD, WIDTH)
        matrix(f"blk.{i}.attn_v.weight", KV_HEADS * HEAD, WIDTH)
        matrix(f"blk.{i}.attn_output.weight", WIDTH, HEADS * HEAD)
        norm(f"blk.{i}.ffn_norm.weight")
        matrix(f"blk.{i}.ffn_gate.weight", FFN, WIDTH)
        matrix(f"blk.{i}.ffn_up.weight", FFN, WIDTH)
        matrix(f"blk.{i}.ffn_down.weight", WIDTH, FFN)
    norm("output_norm.weight")
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def scales(architecture, embedding, residual, logits, attention=None):
    def add(w):
        w.add_float32(f"{architecture}.embedding_scale", embedding)
        w.add_float32(f"{architecture}.residual_scale", residual)
        w.add_float32(f"{architecture}.logit_scale", logits)
        if attention is not None:
            w.add_float32(f"{architecture}.attention.scale", attention)
    return add


def main():
    folder = sys.argv[1]
    write(f"{folder}/smollm3.gguf", "smollm3", 5, lambda w: None)
    write(f"{folder}/granite.gguf", "granite", 2, scales("granite", 6.0, 0.22, 4.0, 0.3))
    write(f"{folder}/minicpm.gguf", "minicpm", 2, scales("minicpm", 12.0, 0.7, 3.0))


if __name__ == "__main__":
    main()
