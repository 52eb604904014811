// A feed-forward part made of experts: a router chooses a few of many gated networks for each token, their outputs are
// summed in the order of the choice, and experts that every token uses (shared ones) are added.
//
// Not for: where experts lie or when they are read (memory/), or the choice itself (routing.h).
//
//   ExpertsSpec spec{.experts = 8, .used = 2, .normalise = true};
//   ExpertsWeights w = RIDGE_TRY(load_experts(b, c, il, spec));
//   ops.part(layer_name(il, "ffn"));                       // holds the router and the shared experts
//   ops.add(x, experts_ffn(ops, ops.rms_norm(x, norm, eps), w, spec));
#pragma once

#include "model/builder.h"
#include "model/layers.h"
#include "model/ops.h"

namespace ridge {

struct ExpertsSpec {
  uint32_t experts = 0, used = 0;  // used ≤ experts
  RouterGating gating = RouterGating::softmax;
  bool normalise = false;  // the weights of the chosen are divided by their sum
  float scale = 1;         // and then multiplied by this
  // A token may choose from the best groups_used of `groups` equal ranges of experts only.
  uint32_t groups = 1, groups_used = 1;
  Gate gate = Gate::silu;
  bool biases = false;  // of the router and of every expert: required
};

struct ExpertsWeights {
  Weight router;             // [experts, width]
  VectorRef router_bias;     // [experts]
  VectorRef selection_bias;  // [experts]: added for the choice alone
  ExpertMatrices matrices;
  FfnWeights shared;   // absent: its down is empty
  Weight shared_gate;  // [1, width]: the shared output is multiplied by sigmoid(shared_gate · x)
};

// Reads "blk.<layer>.ffn_gate_inp", "ffn_{gate,up,down}_exps" (or "ffn_gate_up_exps"), "exp_probs_b.bias", and where
// the file has them "ffn_{gate,up,down}_shexp" and "ffn_gate_inp_shexp". Widths of experts come from the tensors.
// Bad input: a missing tensor, or one whose shape is not of this many experts.
Result<ExpertsWeights> load_experts(ModelBuilder& b, const ModelConfig& c, uint32_t layer, const ExpertsSpec& spec);

// expert_count, expert_used_count, expert_group_count, expert_group_used_count, expert_gating_func,
// expert_weights_scale and expert_weights_norm; what a file does not say is as in `spec`. Bad input if the counts do
// not go together.
Result<ExpertsSpec> read_experts_spec(ModelBuilder& b, ExpertsSpec spec);

// [tokens, width] → [tokens, width]. Weights of the router and of the shared experts belong to the current part;
// experts are blocks of their own, "blk.3.expert.17/0".
Rows experts_ffn(Ops& ops, Rows x, const ExpertsWeights& w, const ExpertsSpec& spec);

}  // namespace ridge
