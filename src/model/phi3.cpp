// phi3: a plain decoder whose q, k, v and whose gate, up are one matrix each; long-context variants choose between two
// sets of rotary factors by the context in use (docs/models/phi3.md).
#include <fmt/format.h>

#include <algorithm>

#include "model/architectures.h"
#include "model/layers.h"

namespace ridge {
namespace {

struct Layer {
  VectorRef attn_norm, ffn_norm;
  AttentionWeights attention;
  FfnWeights ffn;
};

class Phi3 : public Model {
 public:
  void forward(Ops& ops) const override {
    Rows x = ops.embed(embedding_);
    for (uint32_t il = 0; il < layers_.size(); ++il) {
      const Layer& w = layers_[il];
      Frame frame(ops);
      ops.part(layer_name(il, "attn"));
      ops.add(x, self_attention(ops, ops.rms_norm(x, w.attn_norm, config_.norm_eps), w.attention, spec_, il));
      ops.part(layer_name(il, "ffn"));
      ops.add(x, gated_ffn(ops, ops.rms_norm(x, w.ffn_norm, config_.norm_eps), w.ffn, Gate::silu));
    }
    ops.part("head");
    ops.logits(ops.rms_norm(x, output_norm_, config_.norm_eps), head_, 0);
  }

  Result<void> load(ModelBuilder& b, const ModelConfig& c) {
    RIDGE_TRY(b.ends(*this, output_norm_));
    spec_ = attention_spec(c, RopePairs::halves);
    rope_tables_.push_back(RIDGE_TRY(rope(b, c)));
    for (uint32_t il = 0; il < c.layers; ++il) {
      auto name = [&](std::string_view suffix) { return layer_name(il, suffix); };
      uint64_t qkv_rows = uint64_t{c.heads} * c.key_dim + uint64_t{c.kv_heads} * (c.key_dim + c.value_dim);
      if (qkv_rows > UINT32_MAX)
        return bad_input(fmt::format("{}: its heads are beyond any model", b.metadata().where));
      uint32_t qkv = static_cast<uint32_t>(qkv_rows);
      Layer layer;
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
      layers_.push_back(layer);
      kv_layers_.push_back({.kv_heads = c.kv_heads, .key_dim = c.key_dim, .value_dim = c.value_dim});
    }
    return {};
  }

 private:
  // Factors are per layer in the file, and all layers have the same ones: llama.cpp's converter writes them once,
  // without a layer in the name.
  Result<RopeTable> rope(ModelBuilder& b, const ModelConfig& c) {
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

  std::vector<Layer> layers_;
  AttentionSpec spec_;
  VectorRef output_norm_;
};

}  // namespace

Result<std::unique_ptr<Model>> make_phi3(ModelBuilder& b) {
  ModelConfig c = RIDGE_TRY(b.decoder_config());
  auto model = std::make_unique<Phi3>();
  RIDGE_TRY(model->load(b, c));
  return b.finish(std::move(model), c);
}

}  // namespace ridge
