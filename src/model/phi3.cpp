// phi3: a plain decoder whose q, k, v and whose gate, up are one matrix each; long-context variants choose between two
// sets of rotary factors by the context in use (docs/models/phi3.md).
#include <fmt/format.h>

#include <algorithm>

#include "model/architectures.h"
#include "model/plain_decoder.h"

namespace ridge {
namespace {

Result<PlainLayer> load_layer(ModelBuilder& b, const ModelConfig& c, uint32_t il) {
  auto name = [&](std::string_view suffix) { return layer_name(il, suffix); };
  uint64_t qkv_rows = uint64_t{c.heads} * c.key_dim + uint64_t{c.kv_heads} * (c.key_dim + c.value_dim);
  if (qkv_rows > UINT32_MAX) return bad_input(fmt::format("{}: its heads are beyond any model", b.metadata().where));
  uint32_t qkv = static_cast<uint32_t>(qkv_rows);
  PlainLayer layer;
  layer.spec = attention_spec(c, RopePairs::halves);
  layer.attn_norm = RIDGE_TRY(b.vector(name("attn_norm.weight"), c.width));
  layer.attention.qkv = RIDGE_TRY(b.optional_matrix(name("attn_qkv.weight"), {.rows = qkv, .cols = c.width}));
  if (layer.attention.qkv) {
    layer.attention.qkv_bias = RIDGE_TRY(b.optional_vector(name("attn_qkv.bias"), qkv));
    layer.attention.output =
        RIDGE_TRY(b.matrix(name("attn_output.weight"), {.rows = c.width, .cols = c.heads * c.value_dim}));
    layer.attention.output_bias = RIDGE_TRY(b.optional_vector(name("attn_output.bias"), c.width));
  } else {
    layer.attention = RIDGE_TRY(load_attention(b, c, il, {}));
  }
  layer.ffn_norm = RIDGE_TRY(b.vector(name("ffn_norm.weight"), c.width));
  layer.ffn.gate_up = RIDGE_TRY(b.matrix(name("ffn_up.weight"), {.rows = 2 * c.ffn, .cols = c.width}));
  layer.ffn.down = RIDGE_TRY(b.matrix(name("ffn_down.weight"), {.rows = c.width, .cols = c.ffn}));
  return layer;
}

// Factors are per layer in the file, and all layers have the same ones: llama.cpp's converter writes them once,
// without a layer in the name.
Result<RopeTable> rope_of(ModelBuilder& b, const ModelConfig& c) {
  RopeTable table = RIDGE_TRY(rope_table_of(b, c, "rope.freq_base", 10000.0f));
  uint32_t original = RIDGE_TRY(b.integer("rope.scaling.original_context_length", c.context));
  table.config.magnitude = static_cast<double>(RIDGE_TRY(b.number("rope.scaling.attn_factor", 1.0f)));
  // Not the context that a budget leaves: text must not depend on the budget.
  constexpr uint32_t kDefaultContext = 4096;
  uint64_t context = b.options().context != 0 ? b.options().context : std::min(c.context, kDefaultContext);
  bool is_long = context > original;
  uint32_t pairs = static_cast<uint32_t>(table.config.rot / 2);
  VectorRef long_factors = RIDGE_TRY(b.optional_vector("rope_factors_long.weight", pairs));
  VectorRef short_factors = RIDGE_TRY(b.optional_vector("rope_factors_short.weight", pairs));
  table.factors = is_long ? long_factors : short_factors;
  return table;
}

}  // namespace

Result<std::unique_ptr<Model>> make_phi3(ModelBuilder& b) {
  ModelConfig c = RIDGE_TRY(b.decoder_config());
  PlainParts parts;
  parts.rope = RIDGE_TRY(rope_of(b, c));
  for (uint32_t il = 0; il < c.layers; ++il) parts.layers.push_back(RIDGE_TRY(load_layer(b, c, il)));
  return make_plain_decoder(b, c, std::move(parts));
}

}  // namespace ridge
