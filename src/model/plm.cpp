// plm: latent attention and a feed-forward part of two matrices with a squared ReLU between them (docs/models/plm.md).
#include "model/architectures.h"
#include "model/layers.h"
#include "model/mla.h"

namespace ridge {
namespace {

struct PlmLayer {
  VectorRef attn_norm, ffn_norm;
  MlaWeights attention;
  FfnWeights ffn;
};

class Plm : public Model {
 public:
  void forward(Ops& ops) const override {
    float eps = config_.norm_eps;
    Rows x = ops.embed(embedding_);
    for (uint32_t il = 0; il < layers_.size(); ++il) {
      const PlmLayer& w = layers_[il];
      Frame frame(ops);
      ops.part(layer_name(il, "attn"));
      ops.add(x, mla_attention(ops, ops.rms_norm(x, w.attn_norm, eps), w.attention, spec_, il));
      ops.part(layer_name(il, "ffn"));
      ops.add(x, relu_squared_ffn(ops, ops.rms_norm(x, w.ffn_norm, eps), w.ffn));
    }
    ops.part("head");
    ops.logits(ops.rms_norm(x, output_norm_, eps), head_, 0);
  }

  Result<void> load(ModelBuilder& b, const ModelConfig& c) {
    RIDGE_TRY(b.ends(*this, output_norm_));
    spec_ = RIDGE_TRY(read_mla_spec(b, c));
    RopeTable rope = RIDGE_TRY(rope_table_of(b, c, "rope.freq_base", 10000.0f));
    rope.config.linear_factor = RIDGE_TRY(linear_rope_factor(b));
    rope_tables_.push_back(rope);
    for (uint32_t il = 0; il < c.layers; ++il) {
      PlmLayer layer;
      layer.attn_norm = RIDGE_TRY(b.vector(layer_name(il, "attn_norm.weight"), c.width));
      layer.attention = RIDGE_TRY(load_mla(b, c, il, spec_));
      layer.ffn_norm = RIDGE_TRY(b.vector(layer_name(il, "ffn_norm.weight"), c.width));
      layer.ffn = RIDGE_TRY(load_plain_ffn(b, c, il));
      layers_.push_back(layer);
      kv_layers_.push_back(mla_kv_layer(spec_));
    }
    return {};
  }

 private:
  std::vector<PlmLayer> layers_;
  MlaSpec spec_;
  VectorRef output_norm_;
};

}  // namespace

Result<std::unique_ptr<Model>> make_plm(ModelBuilder& b) {
  ModelConfig c = RIDGE_TRY(b.decoder_config());
  auto model = std::make_unique<Plm>();
  RIDGE_TRY(model->load(b, c));
  return b.finish(std::move(model), c);
}

}  // namespace ridge
