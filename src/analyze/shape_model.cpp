#include "analyze/shape_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "model/layers.h"
#include "model/mla.h"
#include "tensor/type_names.h"

namespace ridge {
namespace {

// Where a type's blocks do not divide the columns, the next larger type of 32 takes its place, as converters do.
Type fitting(Type type, uint32_t cols) {
  if (cols % type_info(type).block == 0) return type;
  const Type small = type_info(type).bytes * 8.0 / type_info(type).block < 5 ? Type::Q5_0 : Type::Q8_0;
  return cols % type_info(small).block == 0 ? small : Type::F16;
}

class ShapeModel : public Model {
 public:
  explicit ShapeModel(const ModelShape& shape) : s_(shape) {
    config_ = {.architecture = "shape",
               .name = shape.name,
               .layers = shape.layers,
               .width = shape.width,
               .ffn = shape.ffn,
               .vocabulary = shape.vocabulary,
               .heads = shape.heads,
               .kv_heads = shape.kv_heads,
               .key_dim = shape.head_dim,
               .value_dim = shape.head_dim,
               .context = shape.context};
    RopeTable rope;
    rope.config.rot = shape.latent != 0 ? shape.rope : shape.head_dim;
    rope_tables_.push_back(rope);
    embedding_ = matrix("token_embd.weight", shape.vocabulary, shape.width, shape.head_type);
    head_ = shape.tied ? embedding_ : matrix("output.weight", shape.vocabulary, shape.width, shape.head_type);
    for (uint32_t il = 0; il < shape.layers; ++il) add_layer(il);
  }

  void forward(Ops& ops) const override {
    Rows x = ops.embed(embedding_);
    for (uint32_t il = 0; il < layers_.size(); ++il) {
      Frame frame(ops);
      ops.part(layer_name(il, "attn"));
      Rows h = ops.rms_norm(x, {}, 1e-5f);
      ops.add(x, s_.latent != 0 ? mla_attention(ops, h, layers_[il].mla, mla_, il)
                                : self_attention(ops, h, layers_[il].attention, attention_, il));
      ops.part(layer_name(il, "ffn"));
      ops.add(x, feed_forward(ops, ops.rms_norm(x, {}, 1e-5f), layers_[il]));
    }
    ops.part("head");
    ops.logits(ops.rms_norm(x, {}, 1e-5f), head_, 0);
  }

 private:
  struct Layer {
    AttentionWeights attention;
    MlaWeights mla;
    FfnWeights ffn;
    Weight router;
    ExpertMatrices experts;
  };

  Weight matrix(std::string name, uint32_t rows, uint32_t cols, Type wish) {
    const Type type = fitting(wish, cols);
    tensors_.push_back({.name = std::move(name), .type = type, .rows = rows, .cols = cols});
    return {
        .id = static_cast<TensorId>(tensors_.size() - 1), .rows = rows, .cols = cols, .type = type, .present = true};
  }

  Weight stack(std::string name, uint32_t rows, uint32_t cols) {
    Weight first = matrix(std::move(name), rows, cols, s_.type);
    for (uint32_t e = 1; e < s_.experts; ++e) (void)matrix("", rows, cols, s_.type);
    return first;
  }

  void add_layer(uint32_t il) {
    auto of = [&](std::string_view suffix, uint32_t rows, uint32_t cols) {
      return matrix(layer_name(il, suffix), rows, cols, s_.type);
    };
    Layer l;
    if (s_.latent != 0) {
      const uint32_t q = s_.heads * (s_.nope + s_.rope);
      if (s_.query_rank != 0) {
        l.mla.q_a = of("attn_q_a.weight", s_.query_rank, s_.width);
        l.mla.q_b = of("attn_q_b.weight", q, s_.query_rank);
      } else {
        l.mla.q = of("attn_q.weight", q, s_.width);
      }
      l.mla.kv_a = of("attn_kv_a_mqa.weight", s_.latent + s_.rope, s_.width);
      if (s_.absorbed) {
        l.mla.k_b = of("attn_k_b.weight", s_.heads * s_.latent, s_.nope);
        l.mla.v_b = of("attn_v_b.weight", s_.heads * s_.value, s_.latent);
      } else {
        l.mla.kv_b = of("attn_kv_b.weight", s_.heads * (s_.nope + s_.value), s_.latent);
      }
      l.mla.output = of("attn_output.weight", s_.width, s_.heads * s_.value);
      mla_ = {.heads = s_.heads,
              .nope = s_.nope,
              .rope = s_.rope,
              .value = s_.value,
              .latent = s_.latent,
              .query_rank = s_.query_rank,
              .scale = 1};
      kv_layers_.push_back(mla_kv_layer(mla_));
    } else {
      const uint32_t q = s_.heads * s_.head_dim, kv = s_.kv_heads * s_.head_dim;
      l.attention.q = of("attn_q.weight", q, s_.width);
      l.attention.k = of("attn_k.weight", kv, s_.width);
      l.attention.v = of("attn_v.weight", kv, s_.width);
      l.attention.output = of("attn_output.weight", s_.width, q);
      if (s_.biases) {
        l.attention.q_bias.size = q;
        l.attention.k_bias.size = l.attention.v_bias.size = kv;
      }
      attention_ = attention_spec(config_, RopePairs::halves);
      attention_.window = s_.window;
      kv_layers_.push_back(
          {.kv_heads = s_.kv_heads, .key_dim = s_.head_dim, .value_dim = s_.head_dim, .window = s_.window});
    }
    add_ffn(il, l);
    layers_.push_back(l);
  }

  void add_ffn(uint32_t il, Layer& l) {
    auto of = [&](std::string_view suffix, uint32_t rows, uint32_t cols) {
      return matrix(layer_name(il, suffix), rows, cols, s_.type);
    };
    const bool experts = s_.experts != 0;
    const uint32_t ffn = experts ? s_.shared_ffn : s_.ffn;
    if (experts) {
      l.router = matrix(layer_name(il, "ffn_gate_inp.weight"), s_.experts, s_.width, Type::F32);
      l.experts.count = s_.experts;
      l.experts.gate = stack(layer_name(il, "ffn_gate_exps.weight"), s_.ffn, s_.width);
      l.experts.up = stack(layer_name(il, "ffn_up_exps.weight"), s_.ffn, s_.width);
      l.experts.down = stack(layer_name(il, "ffn_down_exps.weight"), s_.width, s_.ffn);
    }
    if (ffn == 0) return;
    const std::string suffix = experts ? "_shexp.weight" : ".weight";
    if (s_.ffn_matrices == 3) l.ffn.gate = of("ffn_gate" + suffix, ffn, s_.width);
    l.ffn.up = of("ffn_up" + suffix, ffn, s_.width);
    l.ffn.down = of("ffn_down" + suffix, s_.width, ffn);
  }

  Rows dense(Ops& ops, Rows h, const FfnWeights& w) const {
    return w.gate ? gated_ffn(ops, h, w, Gate::silu) : relu_squared_ffn(ops, h, w);
  }

  Rows feed_forward(Ops& ops, Rows h, const Layer& l) const {
    if (s_.experts == 0) return dense(ops, h, l.ffn);
    Rows out = ops.temp(s_.width);
    Rows scores = ops.temp(s_.experts);
    ops.linear(h, {{.weight = l.router, .out = scores}});
    const Routing routing = ops.route(scores, {.experts = s_.experts, .used = s_.experts_used});
    ops.experts(h, routing, l.experts, Gate::silu, out);
    if (s_.shared_ffn != 0) ops.add(out, dense(ops, h, l.ffn));
    return out;
  }

  ModelShape s_;
  std::vector<Layer> layers_;
  AttentionSpec attention_;
  MlaSpec mla_;
};

Error wrong(const std::string& where, std::string_view what) {
  return bad_input(fmt::format("{}: {}; docs/roofline.md describes shapes", where, what));
}

struct Reader {
  const nlohmann::json& json;
  const std::string& where;

  Result<void> number(const char* key, uint32_t& value, bool needed) const {
    constexpr uint64_t kMost = uint64_t{1} << 24;
    auto at = json.find(key);
    if (at == json.end()) {
      if (needed) return wrong(where, fmt::format("'{}' is missing: expected a whole number above 0", key));
      return {};
    }
    if (!at->is_number_unsigned() || at->get<uint64_t>() > kMost || (needed && at->get<uint64_t>() == 0)) {
      return wrong(where, fmt::format("'{}' is no whole number from {} to {}", key, needed ? 1 : 0, kMost));
    }
    value = at->get<uint32_t>();
    return {};
  }
  Result<void> flag(const char* key, bool& value) const {
    auto at = json.find(key);
    if (at == json.end()) return {};
    if (!at->is_boolean()) return wrong(where, fmt::format("'{}' is neither true nor false", key));
    value = at->get<bool>();
    return {};
  }
  Result<void> type(const char* key, Type& value) const {
    auto at = json.find(key);
    if (at == json.end()) return {};
    const std::optional<Type> named = at->is_string() ? type_named(at->get<std::string>()) : std::nullopt;
    if (!named) return wrong(where, fmt::format("'{}' is no type that Ridge knows, like \"Q8_0\"", key));
    value = *named;
    return {};
  }
};

Result<void> check_keys(const nlohmann::json& json, const std::string& where) {
  constexpr std::string_view kKeys[] = {"name",       "source",   "layers",   "width",        "ffn",
                                        "vocabulary", "heads",    "kv_heads", "head_dim",     "ffn_matrices",
                                        "tied",       "biases",   "window",   "context",      "type",
                                        "head_type",  "latent",   "nope",     "rope",         "value",
                                        "query_rank", "absorbed", "experts",  "experts_used", "shared_ffn"};
  for (const auto& [key, value] : json.items()) {
    if (std::find(std::begin(kKeys), std::end(kKeys), key) == std::end(kKeys)) {
      return wrong(where, fmt::format("'{}' is no key of a shape", key));
    }
  }
  return {};
}

}  // namespace

ModelShape with_type(ModelShape shape, Type type, Type head_type) {
  shape.type = type;
  shape.head_type = head_type;
  return shape;
}

Result<ModelShape> parse_shape(std::string_view text, const std::string& where) {
  const nlohmann::json json = nlohmann::json::parse(text.begin(), text.end(), nullptr, false);
  if (!json.is_object()) return wrong(where, "is no JSON object");
  RIDGE_TRY(check_keys(json, where));
  const Reader in{json, where};
  ModelShape s;
  s.name = json.contains("name") && json["name"].is_string() ? json["name"].get<std::string>() : where;
  for (auto& [key, value] : {std::pair{"layers", &s.layers},
                             {"width", &s.width},
                             {"ffn", &s.ffn},
                             {"vocabulary", &s.vocabulary},
                             {"heads", &s.heads}}) {
    RIDGE_TRY(in.number(key, *value, true));
  }
  s.kv_heads = s.heads;
  s.head_dim = s.width / s.heads;
  for (auto& [key, value] : {std::pair{"kv_heads", &s.kv_heads},
                             {"head_dim", &s.head_dim},
                             {"ffn_matrices", &s.ffn_matrices},
                             {"window", &s.window},
                             {"context", &s.context},
                             {"latent", &s.latent},
                             {"nope", &s.nope},
                             {"rope", &s.rope},
                             {"value", &s.value},
                             {"query_rank", &s.query_rank},
                             {"experts", &s.experts},
                             {"experts_used", &s.experts_used},
                             {"shared_ffn", &s.shared_ffn}}) {
    RIDGE_TRY(in.number(key, *value, false));
  }
  RIDGE_TRY(in.flag("tied", s.tied));
  RIDGE_TRY(in.flag("biases", s.biases));
  RIDGE_TRY(in.flag("absorbed", s.absorbed));
  RIDGE_TRY(in.type("type", s.type));
  s.head_type = s.type;
  RIDGE_TRY(in.type("head_type", s.head_type));
  RIDGE_TRY(make_shape_model(s));
  return s;
}

Result<std::unique_ptr<Model>> make_shape_model(const ModelShape& s) {
  auto need = [&](bool good, std::string_view what) -> Result<void> {
    if (good) return {};
    return wrong(s.name, what);
  };
  constexpr uint32_t kMostLayers = 4096, kMostExperts = 4096;
  RIDGE_TRY(need(s.layers > 0 && s.layers <= kMostLayers, "'layers' is not from 1 to 4096"));
  RIDGE_TRY(need(s.width > 0 && s.ffn > 0 && s.vocabulary > 0 && s.heads > 0, "a size is 0"));
  RIDGE_TRY(need(s.ffn_matrices == 2 || s.ffn_matrices == 3, "'ffn_matrices' is neither 2 nor 3"));
  RIDGE_TRY(need(s.kv_heads > 0 && s.heads % s.kv_heads == 0, "'heads' is no multiple of 'kv_heads'"));
  if (s.latent == 0) {
    RIDGE_TRY(need(s.head_dim > 0, "'head_dim' is 0"));
    // The cache's 8-bit blocks and the rotation of pairs want this of every model that runs, too.
    RIDGE_TRY(need(s.head_dim % 2 == 0, "'head_dim' is odd"));
  } else {
    RIDGE_TRY(need(s.nope > 0 && s.rope > 0 && s.value > 0, "latent attention needs 'nope', 'rope' and 'value'"));
  }
  if (s.experts != 0) {
    RIDGE_TRY(need(s.experts <= kMostExperts, "'experts' is above 4096"));
    RIDGE_TRY(need(s.experts_used > 0 && s.experts_used <= s.experts, "'experts_used' is not from 1 to 'experts'"));
    RIDGE_TRY(need(s.ffn_matrices == 3, "experts have three matrices"));
  }
  return std::unique_ptr<Model>(std::make_unique<ShapeModel>(s));
}

}  // namespace ridge
