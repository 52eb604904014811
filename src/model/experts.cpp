#include "model/experts.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"

namespace ridge {
namespace {

// More than any model has; a hostile file must not make us loop over 2^31 of them.
constexpr uint32_t kMostExperts = 4096, kMostGroups = 64;
constexpr uint64_t kMostExpertsInAll = 1 << 17;  // five times the largest known; each has its own blocks

// Rows of one matrix of a stack (or of a plain one), from the file: the width of experts is in no key that all models
// have. 0 if there is no such tensor; its shape is then checked by whoever reads it.
Result<uint32_t> rows_of(ModelBuilder& b, const std::string& name) {
  const GgufTensor* t = b.file().find(name);
  if (t == nullptr) return uint32_t{0};
  if (t->shape[1] == 0 || t->shape[1] > UINT32_MAX / 2)
    return bad_input(
        fmt::format("{}: tensor '{}' has {} rows, which is beyond any model", b.metadata().where, name, t->shape[1]));
  return static_cast<uint32_t>(t->shape[1]);
}

Result<ExpertMatrices> load_matrices(ModelBuilder& b, const ModelConfig& c, uint32_t layer, const ExpertsSpec& spec) {
  auto name = [&](std::string_view suffix) { return layer_name(layer, suffix); };
  ExpertMatrices m;
  m.count = spec.experts;
  const uint32_t both = RIDGE_TRY(rows_of(b, name("ffn_gate_up_exps.weight")));
  uint32_t hidden = both / 2;
  if (both != 0) {
    m.gate_up =
        RIDGE_TRY(b.stack(name("ffn_gate_up_exps.weight"), {.rows = 2 * hidden, .cols = c.width}, spec.experts));
  } else {
    hidden = RIDGE_TRY(rows_of(b, name("ffn_gate_exps.weight")));
    m.gate = RIDGE_TRY(b.stack(name("ffn_gate_exps.weight"), {.rows = hidden, .cols = c.width}, spec.experts));
    m.up = RIDGE_TRY(b.stack(name("ffn_up_exps.weight"), {.rows = hidden, .cols = c.width}, spec.experts));
  }
  m.down = RIDGE_TRY(b.stack(name("ffn_down_exps.weight"), {.rows = c.width, .cols = hidden}, spec.experts));
  if (!spec.biases) return m;
  m.gate_bias = RIDGE_TRY(b.vectors(name("ffn_gate_exps.bias"), hidden, spec.experts));
  m.up_bias = RIDGE_TRY(b.vectors(name("ffn_up_exps.bias"), hidden, spec.experts));
  m.down_bias = RIDGE_TRY(b.vectors(name("ffn_down_exps.bias"), c.width, spec.experts));
  return m;
}

}  // namespace

Result<ExpertsSpec> read_experts_spec(ModelBuilder& b, ExpertsSpec spec) {
  auto wrong = [&](std::string_view key, const std::string& what) {
    return bad_input(fmt::format("{}: key '{}' {}", b.metadata().where, b.key(key), what));
  };
  spec.experts = RIDGE_TRY(b.require("expert_count"));
  spec.used = RIDGE_TRY(b.require("expert_used_count"));
  if (spec.experts > kMostExperts)
    return wrong("expert_count", fmt::format("is {}, expected at most {}", spec.experts, kMostExperts));
  const uint32_t layers = RIDGE_TRY(b.require("block_count"));
  if (uint64_t{spec.experts} * layers > kMostExpertsInAll)
    return wrong("expert_count",
                 fmt::format("is {} in {}, more than any model has", spec.experts, counted(layers, "layer")));
  if (spec.used > spec.experts)
    return wrong("expert_used_count",
                 fmt::format("is {}, but the model has {}", spec.used, counted(spec.experts, "expert")));
  spec.groups = std::max(1u, RIDGE_TRY(b.integer("expert_group_count", spec.groups)));
  spec.groups_used = RIDGE_TRY(b.integer("expert_group_used_count", spec.groups));
  if (spec.groups > kMostGroups || spec.experts % spec.groups != 0)
    return wrong("expert_group_count",
                 fmt::format("is {}, expected a divisor of {} up to {}", spec.groups, spec.experts, kMostGroups));
  if (spec.groups_used < 1 || spec.groups_used > spec.groups ||
      spec.groups_used * (spec.experts / spec.groups) < spec.used) {
    return wrong("expert_group_used_count", fmt::format("is {} of {}, which do not hold {}", spec.groups_used,
                                                        counted(spec.groups, "group"), counted(spec.used, "expert")));
  }
  const uint32_t gating = RIDGE_TRY(b.integer("expert_gating_func", 0));
  if (gating > 3)
    return wrong("expert_gating_func", fmt::format("is {}, and Ridge knows 1 (softmax), 2 (sigmoid) and 3 (softmax of "
                                                   "the chosen): the model would choose wrong experts",
                                                   gating));
  constexpr RouterGating kGatings[] = {RouterGating::softmax, RouterGating::sigmoid, RouterGating::softmax_of_chosen};
  if (gating != 0) spec.gating = kGatings[gating - 1];
  const float scale = RIDGE_TRY(b.number("expert_weights_scale", spec.scale));
  if (scale != 0) spec.scale = scale;  // converters write 0 for "none"
  spec.normalise = RIDGE_TRY(b.metadata().boolean(b.key("expert_weights_norm"))).value_or(spec.normalise);
  return spec;
}

Result<ExpertsWeights> load_experts(ModelBuilder& b, const ModelConfig& c, uint32_t layer, const ExpertsSpec& spec) {
  auto name = [&](std::string_view suffix) { return layer_name(layer, suffix); };
  ExpertsWeights w;
  w.router = RIDGE_TRY(b.matrix(name("ffn_gate_inp.weight"), {.rows = spec.experts, .cols = c.width}));
  if (spec.biases) w.router_bias = RIDGE_TRY(b.vector(name("ffn_gate_inp.bias"), spec.experts));
  w.selection_bias = RIDGE_TRY(b.optional_vector(name("exp_probs_b.bias"), spec.experts));
  w.matrices = RIDGE_TRY(load_matrices(b, c, layer, spec));
  const uint32_t shared = RIDGE_TRY(rows_of(b, name("ffn_gate_shexp.weight")));
  if (shared == 0) return w;
  w.shared.gate = RIDGE_TRY(b.matrix(name("ffn_gate_shexp.weight"), {.rows = shared, .cols = c.width}));
  w.shared.up = RIDGE_TRY(b.matrix(name("ffn_up_shexp.weight"), {.rows = shared, .cols = c.width}));
  w.shared.down = RIDGE_TRY(b.matrix(name("ffn_down_shexp.weight"), {.rows = c.width, .cols = shared}));
  w.shared_gate = RIDGE_TRY(b.optional_matrix(name("ffn_gate_inp_shexp.weight"), {.rows = 1, .cols = c.width}));
  return w;
}

Rows experts_ffn(Ops& ops, Rows x, const ExpertsWeights& w, const ExpertsSpec& spec) {
  Rows out = ops.temp(x.cols);
  Frame frame(ops);
  Rows logits = ops.temp(w.router.rows), shared_gate;
  if (w.shared_gate) {
    shared_gate = ops.temp(1);
    ops.linear(
        x, {{.weight = w.router, .bias = w.router_bias, .out = logits}, {.weight = w.shared_gate, .out = shared_gate}});
  } else {
    ops.linear(x, {{.weight = w.router, .bias = w.router_bias, .out = logits}});
  }
  Routing routing = ops.route(logits, {.experts = spec.experts,
                                       .used = spec.used,
                                       .gating = spec.gating,
                                       .normalise = spec.normalise,
                                       .scale = spec.scale,
                                       .groups = spec.groups,
                                       .groups_used = spec.groups_used,
                                       .selection_bias = w.selection_bias});
  if (!w.shared.down) {
    ops.experts(x, routing, w.matrices, spec.gate, out);
    return out;
  }
  // The chosen are being read meanwhile.
  Rows shared = gated_ffn(ops, x, w.shared, spec.gate);
  if (w.shared_gate) ops.scale_by_sigmoid(shared, shared_gate);
  ops.experts(x, routing, w.matrices, spec.gate, out);
  ops.add(out, shared);
  return out;
}

}  // namespace ridge
