#!/usr/bin/env python3
"""Makes tests/data/models/latent-{joint,absorbed}.gguf: tiny random deepseek2 models whose latent attention has
quantised weights, which the reference data lacks. Needs numpy and the `gguf` package.

    make_latent_fixtures.py tests/data/models
"""
import sys

import gguf
import numpy as np

Type = gguf.GGMLQuantizationType
WIDTH, HEADS, NOPE, ROPE, VALUE, LATENT, FFN, VOCABULARY, LAYERS = 64, 3, 32, 16, 32, 64, 64, 320, 2


def write(path, absorbed):
    rng = np.random.default_rng(3)
    w = gguf.GGUFWriter(path, "deepseek2")
    w.add_block_count(LAYERS)
    w.add_context_length(512)
    w.add_embedding_length(WIDTH)
    w.add_feed_forward_length(FFN)
    w.add_head_count(HEADS)
    w.add_head_count_kv(1 if absorbed else HEADS)
    w.add_layer_norm_rms_eps(1e-6)
    w.add_vocab_size(VOCABULARY)
    sizes = {"attention.kv_lora_rank": LATENT, "rope.dimension_count": ROPE, "leading_dense_block_count": LAYERS}
    if absorbed:
        sizes |= {"attention.key_length": LATENT + ROPE, "attention.value_length": LATENT,
                  "attention.key_length_mla": NOPE + ROPE, "attention.value_length_mla": VALUE}
    else:
        sizes |= {"attention.key_length": NOPE + ROPE, "attention.value_length": VALUE}
    for key, size in sizes.items():
        w.add_uint32(f"deepseek2.{key}", size)
    w.add_tokenizer_model("no_vocab")

    def matrix(name, values, kind=Type.Q8_0):
        w.add_tensor(name, gguf.quants.quantize(np.ascontiguousarray(values, np.float32), kind), raw_dtype=kind)

    def random(rows, cols):
        return rng.normal(0, cols ** -0.5, (rows, cols))

    def norm(name, n):
        w.add_tensor(name, rng.uniform(0.5, 1.5, n).astype(np.float32))

    matrix("token_embd.weight", rng.normal(0, 1, (VOCABULARY, WIDTH)))
    norm("output_norm.weight", WIDTH)
    for i in range(LAYERS):
        b = f"blk.{i}."
        norm(b + "attn_norm.weight", WIDTH)
        matrix(b + "attn_q.weight", random(HEADS * (NOPE + ROPE), WIDTH))
        matrix(b + "attn_kv_a_mqa.weight", random(LATENT + ROPE, WIDTH))
        norm(b + "attn_kv_a_norm.weight", LATENT)
        heads = rng.normal(0, LATENT ** -0.5, (HEADS, NOPE + VALUE, LATENT))
        if absorbed:
            matrix(b + "attn_k_b.weight", heads[:, :NOPE].transpose(0, 2, 1), Type.Q5_1)
            matrix(b + "attn_v_b.weight", heads[:, NOPE:])
        else:
            matrix(b + "attn_kv_b.weight", heads.reshape(-1, LATENT), Type.Q4_0)
        matrix(b + "attn_output.weight", random(WIDTH, HEADS * VALUE))
        norm(b + "ffn_norm.weight", WIDTH)
        matrix(b + "ffn_gate.weight", random(FFN, WIDTH))
        matrix(b + "ffn_up.weight", random(FFN, WIDTH))
        matrix(b + "ffn_down.weight", random(WIDTH, FFN))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def main():
    write(f"{sys.argv[1]}/latent-joint.gguf", absorbed=False)
    write(f"{sys.argv[1]}/latent-absorbed.gguf", absorbed=True)


if __name__ == "__main__":
    main()
