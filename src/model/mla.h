// Multi-head latent attention with its projections, as plm and deepseek2 have it (docs/models/deepseek2.md).
//
// Not for: how scores and values are computed (latent_attention.h).
//
//   MlaSpec spec = RIDGE_TRY(read_mla_spec(b, c));
//   MlaWeights w = RIDGE_TRY(load_mla(b, c, il, spec));
//   Rows a = mla_attention(ops, h, w, spec, il);
#pragma once

#include "model/builder.h"
#include "model/ops.h"

namespace ridge {

struct MlaSpec {
  uint32_t heads = 0;
  uint32_t nope = 0, rope = 0, value = 0;  // of a head: dimensions of q and k that do not turn, that turn; of v
  uint32_t latent = 0;                     // kv_lora_rank
  uint32_t query_rank = 0;                 // q_lora_rank; 0: q comes from the input directly
  float scale = 1, norm_eps = 0;
};

struct MlaWeights {
  Weight q, q_a, q_b;  // either q, or q_a, its norm, and q_b
  VectorRef q_norm;
  Weight kv_a;  // rows: the latent, then the rotated part
  VectorRef kv_norm;
  Weight kv_b, k_b, v_b;  // either kv_b, or k_b and v_b
  Weight output;
};

// Head sizes are those of the keys ending in _mla where the file has both (an absorbed file), else key_length and
// value_length. scale is 1/√(nope + rope). Bad input: sizes that do not go together, or that are no multiples of 16.
Result<MlaSpec> read_mla_spec(ModelBuilder& b, const ModelConfig& c);
// Reads "blk.<layer>.attn_*".
Result<MlaWeights> load_mla(ModelBuilder& b, const ModelConfig& c, uint32_t layer, const MlaSpec& spec);
// What a layer keeps: one head.
KvLayer mla_kv_layer(const MlaSpec& spec);

// [tokens, width] → [tokens, width]; stores latents of layer `layer`. Rotary pairs are neighbours, table 0.
Rows mla_attention(Ops& ops, Rows x, const MlaWeights& w, const MlaSpec& spec, uint32_t layer);

}  // namespace ridge
