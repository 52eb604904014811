#include "model/plain_decoder.h"

namespace ridge {
namespace {

class PlainDecoder : public Model {
 public:
  void forward(Ops& ops) const override {
    float eps = config_.norm_eps;
    Rows x = ops.embed(embedding_);
    scale(ops, x, parts_.embedding_scale);
    for (uint32_t il = 0; il < parts_.layers.size(); ++il) {
      const PlainLayer& w = parts_.layers[il];
      Frame frame(ops);
      ops.part(layer_name(il, "attn"));
      Rows a = self_attention(ops, ops.rms_norm(x, w.attn_norm, eps), w.attention, w.spec, il);
      scale(ops, a, parts_.residual_scale);
      ops.add(x, a);
      ops.part(layer_name(il, "ffn"));
      Rows f = feed_forward(ops, ops.rms_norm(x, w.ffn_norm, eps), w.ffn);
      scale(ops, f, parts_.residual_scale);
      ops.add(x, f);
    }
    ops.part("head");
    Rows h = ops.rms_norm(x, output_norm_, eps);
    scale(ops, h, parts_.logit_scale);  // of the head's input: the same, and a vocabulary cheaper
    ops.logits(h, head_, 0);
  }

  Result<void> load(ModelBuilder& b, const ModelConfig& c, PlainParts parts) {
    RIDGE_TRY(b.ends(*this, output_norm_));
    parts_ = std::move(parts);
    rope_tables_.push_back(parts_.rope);
    kv_layers_.assign(c.layers, {.kv_heads = c.kv_heads, .key_dim = c.key_dim, .value_dim = c.value_dim});
    return {};
  }

 private:
  Rows feed_forward(Ops& ops, Rows x, const FfnWeights& w) const {
    if (parts_.ffn == PlainFfn::relu_squared) return relu_squared_ffn(ops, x, w);
    return parts_.ffn == PlainFfn::reglu ? relu_ffn(ops, x, w) : gated_ffn(ops, x, w, Gate::silu);
  }
  static void scale(Ops& ops, Rows x, float factor) {
    if (factor != 1) ops.scale(x, factor);
  }

  PlainParts parts_;
  VectorRef output_norm_;
};

}  // namespace

Result<PlainParts> load_plain_parts(ModelBuilder& b, const ModelConfig& c, const PlainNeeds& needs) {
  PlainParts parts;
  parts.ffn = needs.ffn;
  parts.rope = RIDGE_TRY(rope_table_of(b, c, "rope.freq_base", 10000.0f));
  if (needs.yarn && RIDGE_TRY(b.text("rope.scaling.type", "none")) == "yarn") {
    RIDGE_TRY(read_yarn(b, c, parts.rope.config));
    parts.rope.config.magnitude *= yarn_attention(0.1, parts.rope.config.yarn_factor);
  } else {
    parts.rope.config.linear_factor = RIDGE_TRY(linear_rope_factor(b));
  }
  parts.rope.factors = RIDGE_TRY(b.optional_vector(
      "rope_freqs.weight", static_cast<uint32_t>(parts.rope.config.rot / 2)));  // Llama 3's scaling, per pair
  for (uint32_t il = 0; il < c.layers; ++il) {
    PlainLayer layer;
    layer.spec = attention_spec(c, needs.pairs);
    layer.attn_norm = RIDGE_TRY(b.vector(layer_name(il, "attn_norm.weight"), c.width));
    layer.attention = RIDGE_TRY(load_attention(b, c, il, needs.attention));
    layer.ffn_norm = RIDGE_TRY(b.vector(layer_name(il, "ffn_norm.weight"), c.width));
    const auto load = needs.ffn == PlainFfn::swiglu  ? load_gated_ffn
                      : needs.ffn == PlainFfn::reglu ? load_relu_ffn
                                                     : load_plain_ffn;
    layer.ffn = RIDGE_TRY(load(b, c, il));
    parts.layers.push_back(layer);
  }
  return parts;
}

Result<std::unique_ptr<Model>> make_plain_decoder(ModelBuilder& b, const ModelConfig& c, PlainParts parts) {
  auto model = std::make_unique<PlainDecoder>();
  RIDGE_TRY(model->load(b, c, std::move(parts)));
  return b.finish(std::move(model), c);
}

}  // namespace ridge
