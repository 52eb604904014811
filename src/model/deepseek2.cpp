// deepseek2: latent attention with YaRN, leading dense layers, then experts (docs/models/deepseek2.md). DeepSeek V2,
// V2.5, V3, R1, and what was trained on their plan.
#include <fmt/format.h>

#include "model/architectures.h"
#include "model/experts.h"
#include "model/layers.h"
#include "model/mla.h"

namespace ridge {
namespace {

struct DeepSeek2Layer {
  VectorRef attn_norm, ffn_norm;
  MlaWeights attention;
  bool dense = false;
  FfnWeights ffn;
  ExpertsWeights experts;
};

class Deepseek2 : public Model {
 public:
  void forward(Ops& ops) const override {
    float eps = config_.norm_eps;
    Rows x = ops.embed(embedding_);
    for (uint32_t il = 0; il < layers_.size(); ++il) {
      const DeepSeek2Layer& w = layers_[il];
      Frame frame(ops);
      ops.part(layer_name(il, "attn"));
      ops.add(x, mla_attention(ops, ops.rms_norm(x, w.attn_norm, eps), w.attention, spec_, il));
      ops.part(layer_name(il, "ffn"));
      Rows h = ops.rms_norm(x, w.ffn_norm, eps);
      ops.add(x, w.dense ? gated_ffn(ops, h, w.ffn, Gate::silu) : experts_ffn(ops, h, w.experts, experts_));
    }
    ops.part("head");
    ops.logits(ops.rms_norm(x, output_norm_, eps), head_, 0);
  }

  Result<void> load(ModelBuilder& b, const ModelConfig& c) {
    RIDGE_TRY(b.ends(*this, output_norm_));
    spec_ = RIDGE_TRY(read_mla_spec(b, c));
    rope_tables_.push_back(RIDGE_TRY(read_rope(b, c)));
    uint32_t dense = RIDGE_TRY(b.integer("leading_dense_block_count", 0));
    if (dense < c.layers) experts_ = RIDGE_TRY(read_experts_spec(b, {}));
    for (uint32_t il = 0; il < c.layers; ++il) {
      DeepSeek2Layer layer;
      layer.attn_norm = RIDGE_TRY(b.vector(layer_name(il, "attn_norm.weight"), c.width));
      layer.attention = RIDGE_TRY(load_mla(b, c, il, spec_));
      layer.ffn_norm = RIDGE_TRY(b.vector(layer_name(il, "ffn_norm.weight"), c.width));
      layer.dense = il < dense;
      if (layer.dense) {
        layer.ffn = RIDGE_TRY(load_gated_ffn(b, c, il));
      } else {
        layer.experts = RIDGE_TRY(load_experts(b, c, il, experts_));
      }
      layers_.push_back(layer);
      kv_layers_.push_back(mla_kv_layer(spec_));
    }
    return {};
  }

 private:
  // YaRN, and the factor that it puts on the scores (DeepSeek's mscale). Where the file has the multiplier, the scores
  // take all of it; where it does not, cosines and sines take YaRN's usual share as well.
  Result<RopeTable> read_rope(ModelBuilder& b, const ModelConfig& c) {
    constexpr double kUsualShare = 0.1;
    RopeTable rope = RIDGE_TRY(rope_table_of(b, c, "rope.freq_base", 10000.0f));
    RIDGE_TRY(read_yarn(b, c, rope.config));
    if (rope.config.yarn_factor == 1.0) return rope;
    float key = RIDGE_TRY(b.number("rope.scaling.yarn_log_multiplier", 0.0f));
    double share = key != 0 ? static_cast<double>(key) : kUsualShare;
    double of_scores = rope.config.magnitude * yarn_attention(share, rope.config.yarn_factor);
    if (key == 0) rope.config.magnitude = of_scores;
    spec_.scale = static_cast<float>(of_scores * of_scores * static_cast<double>(spec_.scale));
    return rope;
  }

  std::vector<DeepSeek2Layer> layers_;
  MlaSpec spec_;
  ExpertsSpec experts_;
  VectorRef output_norm_;
};

}  // namespace

Result<std::unique_ptr<Model>> make_deepseek2(ModelBuilder& b) {
  ModelConfig c = RIDGE_TRY(b.decoder_config());
  float temperature = RIDGE_TRY(b.number("attention.temperature_scale", 0.0f));
  if (temperature != 0) {
    return bad_input(
        fmt::format("{}: key '{}' is {}: queries that are scaled by their position are not in Ridge; use "
                    "llama.cpp for this model",
                    b.metadata().where, b.key("attention.temperature_scale"), temperature));
  }
  // Layers that predict further tokens follow the model's own and take no part in it.
  uint32_t further = RIDGE_TRY(b.integer("nextn_predict_layers", 0));
  if (further < c.layers) c.layers -= further;
  auto model = std::make_unique<Deepseek2>();
  RIDGE_TRY(model->load(b, c));
  return b.finish(std::move(model), c);
}

}  // namespace ridge
