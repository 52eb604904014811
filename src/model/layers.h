// Parts that decoders share: attention with its projections, and gated feed-forward networks.
//
//   Rows a = self_attention(ops, h, layer.attention, spec, il);
//   Rows f = gated_ffn(ops, h, layer.ffn, Gate::silu);
#pragma once

#include <string>

#include "model/builder.h"
#include "model/ops.h"

namespace ridge {

// Either q, k, v apart, or one fused matrix whose rows are Q, K, V.
struct AttentionWeights {
  Weight q, k, v, qkv, output;
  VectorRef q_bias, k_bias, v_bias, qkv_bias, output_bias;
  VectorRef q_norm, k_norm;  // per head, [head_dim], or over all heads at once
  VectorRef sinks;           // [heads]
};

struct AttentionSpec {
  uint32_t heads = 0, kv_heads = 0, key_dim = 0, value_dim = 0;
  uint32_t window = 0;
  uint32_t rope_table = 0;
  bool rope = true;  // false: positions play no part in this layer
  RopePairs pairs = RopePairs::neighbours;
  float scale = 1, softcap = 0, norm_eps = 0;
};

// [tokens, width] → [tokens, width]; stores keys and values of layer `layer`.
Rows self_attention(Ops& ops, Rows x, const AttentionWeights& w, const AttentionSpec& spec, uint32_t layer);

// Either gate and up apart, or one fused matrix whose rows are gate, up.
struct FfnWeights {
  Weight gate, up, gate_up, down;
  VectorRef gate_bias, up_bias, down_bias;
  NeuronGroups groups;  // of a pack with bundles: up (but for a part without a gate) and down, in place of the above
};

// down(act(gate·x) ⊙ up·x)
Rows gated_ffn(Ops& ops, Rows x, const FfnWeights& w, Gate gate);
// The same with max(·, 0) as the activation: groups of neurons that rest are not read.
Rows relu_ffn(Ops& ops, Rows x, const FfnWeights& w);
// down(max(up·x, 0)²); no gate, no biases
Rows relu_squared_ffn(Ops& ops, Rows x, const FfnWeights& w);

// What an architecture cannot do without; the rest is read where the file has it.
struct AttentionNeeds {
  bool biases = false;      // of q, k and v
  bool head_norms = false;  // of q and k
  bool full_norms = false;  // of q and k, over all heads at once
};

// Reads "blk.<layer>.attn_*" with separate projections.
Result<AttentionWeights> load_attention(ModelBuilder& b, const ModelConfig& c, uint32_t layer,
                                        const AttentionNeeds& needs);
// Reads "blk.<layer>.ffn_{gate,up,down}".
Result<FfnWeights> load_gated_ffn(ModelBuilder& b, const ModelConfig& c, uint32_t layer);
// The same for relu_ffn().
Result<FfnWeights> load_relu_ffn(ModelBuilder& b, const ModelConfig& c, uint32_t layer);
// Reads "blk.<layer>.ffn_{up,down}".
Result<FfnWeights> load_plain_ffn(ModelBuilder& b, const ModelConfig& c, uint32_t layer);

std::string layer_name(uint32_t layer, std::string_view suffix);  // "blk.3.attn_q.weight"

// The specification that plain decoders start from: scale 1/√key_dim, no window.
AttentionSpec attention_spec(const ModelConfig& c, RopePairs pairs);

}  // namespace ridge
