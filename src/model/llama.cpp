// llama: the plain pre-norm decoder (docs/models/llama.md). SmolLM2, Llama 2 and 3, Mistral and their kin.
// qwen2 and qwen3 differ in where rotary pairs lie and in what their files hold (biases, head norms), so they are here
// as well: the forward pass is one.
#include "model/architectures.h"
#include "model/layers.h"

namespace ridge {
namespace {

struct Layer {
  VectorRef attn_norm, ffn_norm;
  AttentionWeights attention;
  FfnWeights ffn;
};

class PlainDecoder : public Model {
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

  Result<void> load(ModelBuilder& b, const ModelConfig& c, RopePairs pairs, const AttentionNeeds& needs) {
    RIDGE_TRY(b.ends(*this, output_norm_));
    spec_ = attention_spec(c, pairs);
    RopeTable rope = RIDGE_TRY(rope_table_of(b, c, "rope.freq_base", 10000.0f));
    rope.config.linear_factor = RIDGE_TRY(linear_rope_factor(b));
    rope.factors = RIDGE_TRY(b.optional_vector(
        "rope_freqs.weight", static_cast<uint32_t>(rope.config.rot / 2)));  // Llama 3's scaling, per pair
    rope_tables_.push_back(rope);
    for (uint32_t il = 0; il < c.layers; ++il) {
      Layer layer;
      layer.attn_norm = RIDGE_TRY(b.vector(layer_name(il, "attn_norm.weight"), c.width));
      layer.attention = RIDGE_TRY(load_attention(b, c, il, needs));
      layer.ffn_norm = RIDGE_TRY(b.vector(layer_name(il, "ffn_norm.weight"), c.width));
      layer.ffn = RIDGE_TRY(load_gated_ffn(b, c, il));
      layers_.push_back(layer);
      kv_layers_.push_back({.kv_heads = c.kv_heads, .key_dim = c.key_dim, .value_dim = c.value_dim});
    }
    return {};
  }

 private:
  std::vector<Layer> layers_;
  AttentionSpec spec_;
  VectorRef output_norm_;
};

Result<std::unique_ptr<Model>> make(ModelBuilder& b, RopePairs pairs, const AttentionNeeds& needs) {
  ModelConfig c = RIDGE_TRY(b.decoder_config());
  auto model = std::make_unique<PlainDecoder>();
  RIDGE_TRY(model->load(b, c, pairs, needs));
  return b.finish(std::move(model), c);
}

}  // namespace

Result<std::unique_ptr<Model>> make_llama(ModelBuilder& b) {
  const uint32_t experts = RIDGE_TRY(b.integer("expert_count", 0));
  return experts > 0 ? make_llama_with_experts(b) : make(b, RopePairs::neighbours, {});
}
Result<std::unique_ptr<Model>> make_qwen2(ModelBuilder& b) { return make(b, RopePairs::halves, {.biases = true}); }
Result<std::unique_ptr<Model>> make_qwen3(ModelBuilder& b) { return make(b, RopePairs::halves, {.head_norms = true}); }

}  // namespace ridge
