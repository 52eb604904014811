#include "model/mla.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/layers.h"
#include "tensor/panel.h"

namespace ridge {
namespace {

// Panels of a head must be its own, and key panels of the cache whole: all published models have multiples of 32.
Result<void> check_size(ModelBuilder& b, const char* what, uint32_t size) {
  if (size != 0 && size % kPanelRows == 0) return {};
  return bad_input(fmt::format("{}: its {} is {}, and Ridge needs a multiple of {} for latent attention",
                               b.metadata().where, what, size, kPanelRows));
}

}  // namespace

Result<MlaSpec> read_mla_spec(ModelBuilder& b, const ModelConfig& c) {
  MlaSpec s;
  s.heads = c.heads;
  s.norm_eps = c.norm_eps;
  s.latent = RIDGE_TRY(b.require("attention.kv_lora_rank"));
  // Converters write a rank for models that have no such projection, so the tensor decides.
  if (b.file().find(layer_name(0, "attn_q_a.weight")) != nullptr) {
    s.query_rank = RIDGE_TRY(b.require("attention.q_lora_rank"));
  }
  uint32_t key = RIDGE_TRY(b.integer("attention.key_length_mla", 0));
  uint32_t value = RIDGE_TRY(b.integer("attention.value_length_mla", 0));
  bool both = key != 0 && value != 0;
  key = both ? key : c.key_dim;
  s.value = both ? value : c.value_dim;
  s.rope = RIDGE_TRY(b.require("rope.dimension_count"));
  if (s.rope % 2 != 0 || s.rope >= key) {
    return bad_input(fmt::format("{}: key '{}' is {}, expected an even number below the head size {}",
                                 b.metadata().where, b.key("rope.dimension_count"), s.rope, key));
  }
  s.nope = key - s.rope;
  RIDGE_TRY(check_size(b, "kv_lora_rank", s.latent));
  RIDGE_TRY(check_size(b, "head size without the rotated part", s.nope));
  RIDGE_TRY(check_size(b, "value head size", s.value));
  uint64_t widest = uint64_t{s.heads} *
                    std::max({uint64_t{s.nope} + s.value, uint64_t{s.latent} + s.rope, uint64_t{s.nope} + s.rope});
  if (widest > UINT32_MAX) return bad_input(fmt::format("{}: its heads are beyond any model", b.metadata().where));
  s.scale = 1.0f / std::sqrt(static_cast<float>(key));
  return s;
}

Result<MlaWeights> load_mla(ModelBuilder& b, const ModelConfig& c, uint32_t layer, const MlaSpec& s) {
  auto name = [&](std::string_view suffix) { return layer_name(layer, suffix); };
  uint32_t q = s.heads * (s.nope + s.rope);
  MlaWeights w;
  if (s.query_rank != 0) {
    w.q_a = RIDGE_TRY(b.matrix(name("attn_q_a.weight"), {.rows = s.query_rank, .cols = c.width}));
    w.q_norm = RIDGE_TRY(b.vector(name("attn_q_a_norm.weight"), s.query_rank));
    w.q_b = RIDGE_TRY(b.matrix(name("attn_q_b.weight"), {.rows = q, .cols = s.query_rank}));
  } else {
    w.q = RIDGE_TRY(b.matrix(name("attn_q.weight"), {.rows = q, .cols = c.width}));
  }
  w.kv_a = RIDGE_TRY(b.matrix(name("attn_kv_a_mqa.weight"), {.rows = s.latent + s.rope, .cols = c.width}));
  w.kv_norm = RIDGE_TRY(b.vector(name("attn_kv_a_norm.weight"), s.latent));
  w.k_b = RIDGE_TRY(b.optional_matrix(name("attn_k_b.weight"), {.rows = s.heads * s.latent, .cols = s.nope}));
  if (w.k_b) {
    w.v_b = RIDGE_TRY(b.matrix(name("attn_v_b.weight"), {.rows = s.heads * s.value, .cols = s.latent}));
  } else {
    w.kv_b = RIDGE_TRY(b.matrix(name("attn_kv_b.weight"), {.rows = s.heads * (s.nope + s.value), .cols = s.latent}));
  }
  w.output = RIDGE_TRY(b.matrix(name("attn_output.weight"), {.rows = c.width, .cols = s.heads * s.value}));
  return w;
}

KvLayer mla_kv_layer(const MlaSpec& s) { return {.kv_heads = 1, .key_dim = s.latent + s.rope, .value_dim = s.latent}; }

Rows mla_attention(Ops& ops, Rows x, const MlaWeights& w, const MlaSpec& s, uint32_t layer) {
  Rows out = ops.temp(w.output.rows);
  Frame frame(ops);
  size_t head = s.nope + s.rope;
  Rows q = ops.temp(s.heads * head), kv = ops.temp(s.latent + s.rope);
  if (w.q) {
    ops.linear(x, {{.weight = w.q, .out = q}, {.weight = w.kv_a, .out = kv}});
  } else {
    Rows low = ops.temp(s.query_rank);
    ops.linear(x, {{.weight = w.q_a, .out = low}, {.weight = w.kv_a, .out = kv}});
    ops.rms_norm_heads(low, w.q_norm, s.norm_eps, 1);
    ops.linear(low, {{.weight = w.q_b, .out = q}});
  }
  ops.rms_norm_heads(kv.slice_cols(0, s.latent), w.kv_norm, s.norm_eps, 1);
  // Each head ends in the part that turns.
  ops.rope(q.slice_cols(s.nope, q.cols - s.nope), {.heads = s.heads, .head_dim = static_cast<uint32_t>(head)});
  ops.rope(kv.slice_cols(s.latent, s.rope), {.heads = 1, .head_dim = s.rope});
  Rows mixed = ops.temp(s.heads * size_t{s.value});
  ops.latent_attention({.layer = layer,
                        .heads = s.heads,
                        .nope = s.nope,
                        .rope = s.rope,
                        .value = s.value,
                        .latent = s.latent,
                        .kv_b = w.kv_b,
                        .k_b = w.k_b,
                        .v_b = w.v_b,
                        .scale = s.scale},
                       q, kv, mixed);
  ops.linear(mixed, {{.weight = w.output, .out = out}});
  return out;
}

}  // namespace ridge
