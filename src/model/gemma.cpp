// gemma2 and gemma3: norms before and after each part, a scaled embedding, GELU gates, sliding windows
// (docs/models/gemma2.md, gemma3.md).
#include <fmt/format.h>

#include <cmath>

#include "model/architectures.h"
#include "model/layers.h"

namespace ridge {
namespace {

struct GemmaLayer {
  VectorRef attn_norm, post_attention_norm, ffn_norm, post_ffn_norm;
  AttentionWeights attention;
  AttentionSpec spec;
  FfnWeights ffn;
};

// What the two generations set differently.
struct Variant {
  float final_softcap = 0;
  std::vector<AttentionSpec> specs;  // by layer
  AttentionNeeds needs;
};

class Gemma : public Model {
 public:
  void forward(Ops& ops) const override {
    float eps = config_.norm_eps;
    Rows x = ops.embed(embedding_);
    ops.scale(x, std::sqrt(static_cast<float>(config_.width)));
    for (uint32_t il = 0; il < layers_.size(); ++il) {
      const GemmaLayer& w = layers_[il];
      Frame frame(ops);
      ops.part(layer_name(il, "attn"));
      Rows a = self_attention(ops, ops.rms_norm(x, w.attn_norm, eps), w.attention, w.spec, il);
      ops.add(x, ops.rms_norm(a, w.post_attention_norm, eps));
      ops.part(layer_name(il, "ffn"));
      Rows f = gated_ffn(ops, ops.rms_norm(x, w.ffn_norm, eps), w.ffn, Gate::gelu_tanh);
      ops.add(x, ops.rms_norm(f, w.post_ffn_norm, eps));
    }
    ops.part("head");
    ops.logits(ops.rms_norm(x, output_norm_, eps), head_, final_softcap_);
  }

  Result<void> load(ModelBuilder& b, const ModelConfig& c, const Variant& variant, std::vector<RopeTable> ropes) {
    final_softcap_ = variant.final_softcap;
    rope_tables_ = std::move(ropes);
    RIDGE_TRY(b.ends(*this, output_norm_));
    for (uint32_t il = 0; il < c.layers; ++il) {
      GemmaLayer layer;
      layer.spec = variant.specs[il];
      layer.attn_norm = RIDGE_TRY(b.vector(layer_name(il, "attn_norm.weight"), c.width));
      layer.attention = RIDGE_TRY(load_attention(b, c, il, variant.needs));
      layer.post_attention_norm = RIDGE_TRY(b.vector(layer_name(il, "post_attention_norm.weight"), c.width));
      layer.ffn_norm = RIDGE_TRY(b.vector(layer_name(il, "ffn_norm.weight"), c.width));
      layer.ffn = RIDGE_TRY(load_gated_ffn(b, c, il));
      layer.post_ffn_norm = RIDGE_TRY(b.vector(layer_name(il, "post_ffw_norm.weight"), c.width));
      layers_.push_back(layer);
      kv_layers_.push_back(
          {.kv_heads = c.kv_heads, .key_dim = c.key_dim, .value_dim = c.value_dim, .window = layer.spec.window});
    }
    return {};
  }

 private:
  std::vector<GemmaLayer> layers_;
  VectorRef output_norm_;
  float final_softcap_ = 0;
};

// The largest model of each generation scales its queries by the width of a head as n_embd has it.
float query_scale(const ModelConfig& c, uint32_t largest_layers) {
  float dim = c.layers == largest_layers ? static_cast<float>(c.width / c.heads) : static_cast<float>(c.key_dim);
  return 1.0f / std::sqrt(dim);
}

Result<std::unique_ptr<Model>> build(ModelBuilder& b, const ModelConfig& c, const Variant& variant,
                                     std::vector<RopeTable> ropes) {
  auto model = std::make_unique<Gemma>();
  RIDGE_TRY(model->load(b, c, variant, std::move(ropes)));
  return b.finish(std::move(model), c);
}

}  // namespace

Result<std::unique_ptr<Model>> make_gemma2(ModelBuilder& b) {
  constexpr uint32_t kLargestLayers = 46, kDefaultWindow = 4096;
  ModelConfig c = RIDGE_TRY(b.decoder_config());
  AttentionSpec spec = attention_spec(c, RopePairs::halves);
  spec.scale = query_scale(c, kLargestLayers);
  spec.softcap = RIDGE_TRY(b.number("attn_logit_softcapping", 50.0f));
  uint32_t window = RIDGE_TRY(b.integer("attention.sliding_window", kDefaultWindow));
  Variant variant;
  variant.final_softcap = RIDGE_TRY(b.number("final_logit_softcapping", 30.0f));
  for (uint32_t il = 0; il < c.layers; ++il) {
    spec.window = il % 2 == 0 ? window : 0;
    variant.specs.push_back(spec);
  }
  RopeTable rope = RIDGE_TRY(rope_table_of(b, c, "rope.freq_base", 10000.0f));
  rope.config.linear_factor = RIDGE_TRY(linear_rope_factor(b));
  return build(b, c, variant, {rope});
}

Result<std::unique_ptr<Model>> make_gemma3(ModelBuilder& b) {
  constexpr uint32_t kLargestLayers = 62, kDefaultPattern = 6;
  constexpr float kLocalBase = 10000.0f;
  ModelConfig c = RIDGE_TRY(b.decoder_config());
  AttentionSpec spec = attention_spec(c, RopePairs::halves);
  spec.scale = query_scale(c, kLargestLayers);
  spec.softcap = RIDGE_TRY(b.number("attn_logit_softcapping", 0.0f));
  uint32_t window = RIDGE_TRY(b.integer("attention.sliding_window", 0));
  uint32_t pattern = RIDGE_TRY(b.integer("attention.sliding_window_pattern", kDefaultPattern));
  if (pattern == 0)
    return bad_input(fmt::format("{}: key '{}' is 0", b.metadata().where, b.key("attention.sliding_window_pattern")));
  Variant variant;
  variant.needs.head_norms = true;
  variant.final_softcap = RIDGE_TRY(b.number("final_logit_softcapping", 0.0f));
  for (uint32_t il = 0; il < c.layers; ++il) {
    bool slides = window != 0 && (il + 1) % pattern != 0;
    spec.window = slides ? window : 0;
    spec.rope_table = slides ? 1 : 0;
    variant.specs.push_back(spec);
  }
  RopeTable global = RIDGE_TRY(rope_table_of(b, c, "rope.freq_base", 10000.0f));
  global.config.linear_factor = RIDGE_TRY(linear_rope_factor(b));
  RopeTable local = RIDGE_TRY(rope_table_of(b, c, "rope.freq_base_swa", kLocalBase));
  return build(b, c, variant, {global, local});
}

}  // namespace ridge
