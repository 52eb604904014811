// gpt-oss: experts with biases and a clamped gate, attention with sinks whose even layers slide, rotary embedding with
// YaRN (docs/models/gpt-oss.md).
#include "model/architectures.h"
#include "model/experts.h"
#include "model/layers.h"

namespace ridge {
namespace {

struct GptOssLayer {
  VectorRef attn_norm, post_attention_norm;
  AttentionWeights attention;
  AttentionSpec spec;
  ExpertsWeights experts;
};

class GptOss : public Model {
 public:
  void forward(Ops& ops) const override {
    Rows x = ops.embed(embedding_);
    for (uint32_t il = 0; il < layers_.size(); ++il) {
      const GptOssLayer& w = layers_[il];
      Frame frame(ops);
      ops.part(layer_name(il, "attn"));
      ops.add(x, self_attention(ops, ops.rms_norm(x, w.attn_norm, config_.norm_eps), w.attention, w.spec, il));
      ops.part(layer_name(il, "ffn"));
      ops.add(x, experts_ffn(ops, ops.rms_norm(x, w.post_attention_norm, config_.norm_eps), w.experts, experts_));
    }
    ops.part("head");
    ops.logits(ops.rms_norm(x, output_norm_, config_.norm_eps), head_, 0);
  }

  Result<void> load(ModelBuilder& b, const ModelConfig& c) {
    RIDGE_TRY(b.ends(*this, output_norm_));
    experts_ = RIDGE_TRY(
        read_experts_spec(b, {.gating = RouterGating::softmax_of_chosen, .gate = Gate::silu_clamped, .biases = true}));
    RopeTable rope = RIDGE_TRY(rope_table_of(b, c, "rope.freq_base", 10000.0f));
    RIDGE_TRY(read_yarn(b, c, rope.config));
    if (rope.config.yarn_factor != 1.0) rope.config.magnitude *= yarn_attention(0.1, rope.config.yarn_factor);
    rope_tables_.push_back(rope);
    const uint32_t window = RIDGE_TRY(b.require("attention.sliding_window"));
    for (uint32_t il = 0; il < c.layers; ++il) {
      GptOssLayer layer;
      layer.attn_norm = RIDGE_TRY(b.vector(layer_name(il, "attn_norm.weight"), c.width));
      layer.attention = RIDGE_TRY(load_attention(b, c, il, {.biases = true}));
      layer.attention.sinks = RIDGE_TRY(b.vector(layer_name(il, "attn_sinks.weight"), c.heads));
      layer.spec = attention_spec(c, RopePairs::halves);
      layer.spec.window = il % 2 == 0 ? window : 0;
      layer.post_attention_norm = RIDGE_TRY(b.vector(layer_name(il, "post_attention_norm.weight"), c.width));
      layer.experts = RIDGE_TRY(load_experts(b, c, il, experts_));
      layers_.push_back(layer);
      kv_layers_.push_back(
          {.kv_heads = c.kv_heads, .key_dim = c.key_dim, .value_dim = c.value_dim, .window = layer.spec.window});
    }
    return {};
  }

 private:
  std::vector<GptOssLayer> layers_;
  ExpertsSpec experts_;
  VectorRef output_norm_;
};

}  // namespace

Result<std::unique_ptr<Model>> make_gpt_oss(ModelBuilder& b) {
  ModelConfig c = RIDGE_TRY(b.decoder_config());
  auto model = std::make_unique<GptOss>();
  RIDGE_TRY(model->load(b, c));
  return b.finish(std::move(model), c);
}

}  // namespace ridge
