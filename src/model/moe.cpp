// olmoe, qwen2moe, qwen3moe, and llama with experts (Mixtral): the plain decoder of llama.cpp with experts in place of
// its feed-forward part (docs/models/olmoe.md, qwen2moe.md, qwen3moe.md, llama.md). They differ in what their files
// hold and in how the router's weights are made; the forward pass is one.
#include "model/architectures.h"
#include "model/experts.h"
#include "model/layers.h"

namespace ridge {
namespace {

struct MoeLayer {
  VectorRef attn_norm, ffn_norm;
  AttentionWeights attention;
  ExpertsWeights experts;
};

struct Kind {
  RopePairs pairs = RopePairs::halves;
  AttentionNeeds needs;
  ExpertsSpec experts;
};

class ExpertDecoder : public Model {
 public:
  void forward(Ops& ops) const override {
    Rows x = ops.embed(embedding_);
    for (uint32_t il = 0; il < layers_.size(); ++il) {
      const MoeLayer& w = layers_[il];
      Frame frame(ops);
      ops.part(layer_name(il, "attn"));
      ops.add(x, self_attention(ops, ops.rms_norm(x, w.attn_norm, config_.norm_eps), w.attention, spec_, il));
      ops.part(layer_name(il, "ffn"));
      ops.add(x, experts_ffn(ops, ops.rms_norm(x, w.ffn_norm, config_.norm_eps), w.experts, experts_));
    }
    ops.part("head");
    ops.logits(ops.rms_norm(x, output_norm_, config_.norm_eps), head_, 0);
  }

  Result<void> load(ModelBuilder& b, const ModelConfig& c, const Kind& kind) {
    RIDGE_TRY(b.ends(*this, output_norm_));
    spec_ = attention_spec(c, kind.pairs);
    experts_ = RIDGE_TRY(read_experts_spec(b, kind.experts));
    RopeTable rope = RIDGE_TRY(rope_table_of(b, c, "rope.freq_base", 10000.0f));
    rope.config.linear_factor = RIDGE_TRY(linear_rope_factor(b));
    rope.factors = RIDGE_TRY(b.optional_vector("rope_freqs.weight", static_cast<uint32_t>(rope.config.rot / 2)));
    rope_tables_.push_back(rope);
    for (uint32_t il = 0; il < c.layers; ++il) {
      MoeLayer layer;
      layer.attn_norm = RIDGE_TRY(b.vector(layer_name(il, "attn_norm.weight"), c.width));
      layer.attention = RIDGE_TRY(load_attention(b, c, il, kind.needs));
      layer.ffn_norm = RIDGE_TRY(b.vector(layer_name(il, "ffn_norm.weight"), c.width));
      layer.experts = RIDGE_TRY(load_experts(b, c, il, experts_));
      layers_.push_back(layer);
      kv_layers_.push_back({.kv_heads = c.kv_heads, .key_dim = c.key_dim, .value_dim = c.value_dim});
    }
    return {};
  }

 private:
  std::vector<MoeLayer> layers_;
  AttentionSpec spec_;
  ExpertsSpec experts_;
  VectorRef output_norm_;
};

Result<std::unique_ptr<Model>> make(ModelBuilder& b, const Kind& kind) {
  ModelConfig c = RIDGE_TRY(b.decoder_config());
  auto model = std::make_unique<ExpertDecoder>();
  RIDGE_TRY(model->load(b, c, kind));
  return b.finish(std::move(model), c);
}

}  // namespace

Result<std::unique_ptr<Model>> make_llama_with_experts(ModelBuilder& b) {
  return make(b, {.pairs = RopePairs::neighbours, .needs = {}, .experts = {.normalise = true}});
}
Result<std::unique_ptr<Model>> make_olmoe(ModelBuilder& b) {
  return make(b, {.needs = {.full_norms = true}, .experts = {}});
}
Result<std::unique_ptr<Model>> make_qwen2moe(ModelBuilder& b) {
  return make(b, {.needs = {.biases = true}, .experts = {}});
}
Result<std::unique_ptr<Model>> make_qwen3moe(ModelBuilder& b) {
  return make(b, {.needs = {.head_norms = true}, .experts = {.normalise = true}});
}

}  // namespace ridge
