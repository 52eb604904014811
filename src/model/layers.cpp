#include "model/layers.h"

#include <fmt/format.h>

#include <cmath>

namespace ridge {

std::string layer_name(uint32_t layer, std::string_view suffix) { return fmt::format("blk.{}.{}", layer, suffix); }

AttentionSpec attention_spec(const ModelConfig& c, RopePairs pairs) {
  return {.heads = c.heads,
          .kv_heads = c.kv_heads,
          .key_dim = c.key_dim,
          .value_dim = c.value_dim,
          .pairs = pairs,
          .scale = 1.0f / std::sqrt(static_cast<float>(c.key_dim)),
          .norm_eps = c.norm_eps};
}

Rows self_attention(Ops& ops, Rows x, const AttentionWeights& w, const AttentionSpec& spec, uint32_t layer) {
  Rows out = ops.temp(w.output.rows);
  Frame frame(ops);
  size_t q_width = spec.heads * spec.key_dim, k_width = spec.kv_heads * spec.key_dim,
         v_width = spec.kv_heads * spec.value_dim;
  Rows q, k, v;
  if (w.qkv) {
    Rows all = ops.temp(q_width + k_width + v_width);
    ops.linear(x, {{.weight = w.qkv, .bias = w.qkv_bias, .out = all}});
    q = all.slice_cols(0, q_width);
    k = all.slice_cols(q_width, k_width);
    v = all.slice_cols(q_width + k_width, v_width);
  } else {
    q = ops.temp(q_width);
    k = ops.temp(k_width);
    v = ops.temp(v_width);
    ops.linear(x, {{.weight = w.q, .bias = w.q_bias, .out = q},
                   {.weight = w.k, .bias = w.k_bias, .out = k},
                   {.weight = w.v, .bias = w.v_bias, .out = v}});
  }
  if (w.q_norm) ops.rms_norm_heads(q, w.q_norm, spec.norm_eps, w.q_norm.size == q_width ? 1 : spec.heads);
  if (w.k_norm) ops.rms_norm_heads(k, w.k_norm, spec.norm_eps, w.k_norm.size == k_width ? 1 : spec.kv_heads);
  if (spec.rope) {
    ops.rope(q, {.heads = spec.heads, .head_dim = spec.key_dim, .table = spec.rope_table, .pairs = spec.pairs});
    ops.rope(k, {.heads = spec.kv_heads, .head_dim = spec.key_dim, .table = spec.rope_table, .pairs = spec.pairs});
  }
  Rows mixed = ops.temp(spec.heads * spec.value_dim);
  ops.attention({.layer = layer,
                 .heads = spec.heads,
                 .kv_heads = spec.kv_heads,
                 .key_dim = spec.key_dim,
                 .value_dim = spec.value_dim,
                 .window = spec.window,
                 .scale = spec.scale,
                 .softcap = spec.softcap,
                 .sinks = w.sinks},
                q, k, v, mixed);
  ops.linear(mixed, {{.weight = w.output, .bias = w.output_bias, .out = out}});
  return out;
}

Rows gated_ffn(Ops& ops, Rows x, const FfnWeights& w, Gate gate) {
  Rows out = ops.temp(w.down.rows);
  Frame frame(ops);
  Rows g, up;
  if (w.gate_up) {
    size_t hidden = w.gate_up.rows / 2;
    Rows both = ops.temp(w.gate_up.rows);
    ops.linear(x, {{.weight = w.gate_up, .out = both}});
    g = both.slice_cols(0, hidden);
    up = both.slice_cols(hidden, hidden);
  } else {
    g = ops.temp(w.gate.rows);
    up = ops.temp(w.up.rows);
    ops.linear(x, {{.weight = w.gate, .bias = w.gate_bias, .out = g}, {.weight = w.up, .bias = w.up_bias, .out = up}});
  }
  ops.glu(gate, g, up);
  ops.linear(g, {{.weight = w.down, .bias = w.down_bias, .out = out}});
  return out;
}

Rows relu_ffn(Ops& ops, Rows x, const FfnWeights& w) {
  if (!w.groups) return gated_ffn(ops, x, w, Gate::relu);
  Rows out = ops.temp(w.groups.down.rows);
  Frame frame(ops);
  Rows gates = ops.temp(w.gate.rows);
  ops.linear(x, {{.weight = w.gate, .bias = w.gate_bias, .out = gates}});
  ops.relu(gates);
  ops.neurons(x, gates, w.groups, out);
  return out;
}

Rows relu_squared_ffn(Ops& ops, Rows x, const FfnWeights& w) {
  Rows out = ops.temp(w.groups ? w.groups.down.rows : w.down.rows);
  Frame frame(ops);
  Rows hidden = ops.temp(w.up.rows);
  ops.linear(x, {{.weight = w.up, .out = hidden}});
  ops.relu_squared(hidden);
  if (w.groups) {
    ops.neurons(x, hidden, w.groups, out);
    return out;
  }
  ops.linear(hidden, {{.weight = w.down, .out = out}});
  return out;
}

Result<AttentionWeights> load_attention(ModelBuilder& b, const ModelConfig& c, uint32_t layer,
                                        const AttentionNeeds& needs) {
  auto name = [&](std::string_view suffix) { return layer_name(layer, suffix); };
  uint32_t q = c.heads * c.key_dim, k = c.kv_heads * c.key_dim, v = c.kv_heads * c.value_dim;
  AttentionWeights w;
  w.q = RIDGE_TRY(b.matrix(name("attn_q.weight"), {.rows = q, .cols = c.width}));
  w.k = RIDGE_TRY(b.matrix(name("attn_k.weight"), {.rows = k, .cols = c.width}));
  w.v = RIDGE_TRY(b.matrix(name("attn_v.weight"), {.rows = v, .cols = c.width}));
  w.output = RIDGE_TRY(b.matrix(name("attn_output.weight"), {.rows = c.width, .cols = c.heads * c.value_dim}));
  auto vector = [&](std::string_view suffix, uint32_t size, bool needed) {
    return needed ? b.vector(name(suffix), size) : b.optional_vector(name(suffix), size);
  };
  w.q_bias = RIDGE_TRY(vector("attn_q.bias", q, needs.biases));
  w.k_bias = RIDGE_TRY(vector("attn_k.bias", k, needs.biases));
  w.v_bias = RIDGE_TRY(vector("attn_v.bias", v, needs.biases));
  w.output_bias = RIDGE_TRY(b.optional_vector(name("attn_output.bias"), c.width));
  const bool norms = needs.head_norms || needs.full_norms;
  w.q_norm = RIDGE_TRY(vector("attn_q_norm.weight", needs.full_norms ? q : c.key_dim, norms));
  w.k_norm = RIDGE_TRY(vector("attn_k_norm.weight", needs.full_norms ? k : c.key_dim, norms));
  return w;
}

Result<FfnWeights> load_gated_ffn(ModelBuilder& b, const ModelConfig& c, uint32_t layer) {
  auto name = [&](std::string_view suffix) { return layer_name(layer, suffix); };
  FfnWeights w;
  w.gate = RIDGE_TRY(b.matrix(name("ffn_gate.weight"), {.rows = c.ffn, .cols = c.width}));
  w.up = RIDGE_TRY(b.matrix(name("ffn_up.weight"), {.rows = c.ffn, .cols = c.width}));
  w.down = RIDGE_TRY(b.matrix(name("ffn_down.weight"), {.rows = c.width, .cols = c.ffn}));
  w.gate_bias = RIDGE_TRY(b.optional_vector(name("ffn_gate.bias"), c.ffn));
  w.up_bias = RIDGE_TRY(b.optional_vector(name("ffn_up.bias"), c.ffn));
  w.down_bias = RIDGE_TRY(b.optional_vector(name("ffn_down.bias"), c.width));
  return w;
}

Result<FfnWeights> load_relu_ffn(ModelBuilder& b, const ModelConfig& c, uint32_t layer) {
  NeuronGroups groups = RIDGE_TRY(b.neuron_groups(layer, {.rows = c.width, .cols = c.ffn}, true));
  if (!groups) return load_gated_ffn(b, c, layer);
  auto name = [&](std::string_view suffix) { return layer_name(layer, suffix); };
  FfnWeights w;
  w.gate = RIDGE_TRY(b.matrix(name("ffn_gate.weight"), {.rows = c.ffn, .cols = c.width}));
  w.gate_bias = RIDGE_TRY(b.optional_vector(name("ffn_gate.bias"), c.ffn));
  groups.up_bias = RIDGE_TRY(b.optional_vector(name("ffn_up.bias"), c.ffn));
  groups.down_bias = RIDGE_TRY(b.optional_vector(name("ffn_down.bias"), c.width));
  w.groups = groups;
  return w;
}

Result<FfnWeights> load_plain_ffn(ModelBuilder& b, const ModelConfig& c, uint32_t layer) {
  FfnWeights w;
  w.up = RIDGE_TRY(b.matrix(layer_name(layer, "ffn_up.weight"), {.rows = c.ffn, .cols = c.width}));
  w.groups = RIDGE_TRY(b.neuron_groups(layer, {.rows = c.width, .cols = c.ffn}, false));
  if (w.groups) return w;
  w.down = RIDGE_TRY(b.matrix(layer_name(layer, "ffn_down.weight"), {.rows = c.width, .cols = c.ffn}));
  return w;
}

}  // namespace ridge
