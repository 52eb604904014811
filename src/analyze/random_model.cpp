// Random models of a shape, as the architecture that has such layers: llama, qwen2 with biases, deepseek2 (all layers
// dense) and plm for latent attention.
#include <fmt/format.h>

#include <cmath>
#include <map>

#include "analyze/made_file.h"
#include "analyze/made_model.h"
#include "model/layers.h"
#include "tensor/quantize.h"
#include "text/rng.h"

namespace ridge {
namespace {

const char* architecture_of(const ModelShape& shape) {
  if (shape.experts != 0 || shape.window != 0) return nullptr;
  if (shape.latent != 0) {
    if (shape.biases) return nullptr;
    return shape.ffn_matrices == 2 ? "plm" : "deepseek2";
  }
  if (shape.ffn_matrices != 3) return nullptr;
  return shape.biases ? "qwen2" : "llama";
}

Metadata metadata_of(const ModelShape& s, const std::string& architecture, const std::string& name) {
  Metadata metadata;
  auto& entries = metadata.entries();
  entries["general.architecture"] = architecture;
  entries["general.name"] = name;
  auto number = [&](const char* key, uint64_t value) {
    entries[architecture + "." + key] = static_cast<int64_t>(value);
  };
  number("block_count", s.layers);
  number("embedding_length", s.width);
  number("feed_forward_length", s.ffn);
  number("context_length", s.context);
  number("attention.head_count", s.heads);
  entries[architecture + ".attention.layer_norm_rms_epsilon"] = 1e-5;
  if (s.latent == 0) {
    number("attention.head_count_kv", s.kv_heads);
    number("attention.key_length", s.head_dim);
    number("attention.value_length", s.head_dim);
    number("rope.dimension_count", s.head_dim);
    return metadata;
  }
  number("attention.head_count_kv", s.heads);
  number("attention.kv_lora_rank", s.latent);
  if (s.query_rank != 0) number("attention.q_lora_rank", s.query_rank);
  number("attention.key_length", s.nope + s.rope);
  number("attention.value_length", s.value);
  number("rope.dimension_count", s.rope);
  number("leading_dense_block_count", s.layers);
  return metadata;
}

// The matrices of the shape, and the vectors that the architectures have beside them.
std::vector<GgufTensor> tensors_of(const ModelShape& s, const Program& shape) {
  std::vector<GgufTensor> tensors;
  for (const StoredTensor& t : shape.tensors) {
    tensors.push_back({.name = t.name, .shape = {t.cols, t.rows, 1, 1}, .dims = 2, .type = t.type});
  }
  auto vector = [&](std::string name, uint64_t size) {
    tensors.push_back({.name = std::move(name), .shape = {size, 1, 1, 1}, .dims = 1, .type = Type::F32});
  };
  vector("output_norm.weight", s.width);
  for (uint32_t il = 0; il < s.layers; ++il) {
    vector(layer_name(il, "attn_norm.weight"), s.width);
    vector(layer_name(il, "ffn_norm.weight"), s.width);
    if (s.latent != 0) vector(layer_name(il, "attn_kv_a_norm.weight"), s.latent);
    if (s.latent != 0 && s.query_rank != 0) vector(layer_name(il, "attn_q_a_norm.weight"), s.query_rank);
    if (!s.biases) continue;
    vector(layer_name(il, "attn_q.bias"), uint64_t{s.heads} * s.head_dim);
    vector(layer_name(il, "attn_k.bias"), uint64_t{s.kv_heads} * s.head_dim);
    vector(layer_name(il, "attn_v.bias"), uint64_t{s.kv_heads} * s.head_dim);
  }
  return tensors;
}

// Rows of a type, of variance 1 / columns, so that what goes through a layer keeps its size.
class RowPool {
 public:
  // The next of a few rows.
  std::span<const uint8_t> next(Type type, size_t cols) {
    constexpr size_t kRows = 17;
    const size_t row = row_bytes(type, cols);
    std::vector<uint8_t>& pool = pools_[{type, cols}];
    if (pool.empty()) {
      const double reach = std::sqrt(3.0 / static_cast<double>(cols));
      std::vector<float> values(cols);
      pool.resize(kRows * row);
      for (size_t r = 0; r < kRows; ++r) {
        for (float& v : values) v = static_cast<float>((2 * rng_.uniform() - 1) * reach);
        quantize_row(type, values.data(), cols, pool.data() + r * row);
      }
    }
    return {pool.data() + at_++ % kRows * row, row};
  }

 private:
  Rng rng_{1};
  size_t at_ = 0;
  std::map<std::pair<Type, size_t>, std::vector<uint8_t>> pools_;
};

Result<void> write_tensor(const GgufTensor& tensor, RowPool& pool, MadeFile& out) {
  constexpr size_t kPiece = 256 * 1024;
  RIDGE_TRY(out.pad_to(tensor.offset));
  if (tensor.dims == 1) {
    // Norms of one; biases of one are as good as any.
    const std::vector<float> ones(tensor.cols(), 1.0f);
    return out.append({reinterpret_cast<const uint8_t*>(ones.data()), ones.size() * sizeof(float)});
  }
  std::vector<uint8_t> piece;
  for (uint64_t row = 0; row < tensor.rows(); ++row) {
    const std::span<const uint8_t> bytes = pool.next(tensor.type, tensor.cols());
    piece.insert(piece.end(), bytes.begin(), bytes.end());
    if (piece.size() < kPiece && row + 1 < tensor.rows()) continue;
    RIDGE_TRY(out.append(piece));
    piece.clear();
  }
  return {};
}

}  // namespace

Result<void> check_random_model(const ModelShape& shape) {
  if (architecture_of(shape) == nullptr) {
    return usage_error(
        fmt::format("{}: no architecture that Ridge runs has this shape without its weights (experts, "
                    "windows, or two matrices without latent attention); place it on a --machine",
                    shape.name));
  }
  for (Type type : {shape.type, shape.head_type}) {
    if (can_quantize(type)) continue;
    return usage_error(
        fmt::format("{}: random weights can be F32, F16, BF16, Q8_0 or Q4_0, not {}; name another type, "
                    "or place it on a --machine",
                    shape.name, type_info(type).name));
  }
  return {};
}

Result<MadeModel> random_model(const ModelShape& shape, const MadeOptions& options) {
  RIDGE_TRY(check_random_model(shape));
  const std::unique_ptr<Model> counted = RIDGE_TRY(make_shape_model(shape));
  std::vector<GgufTensor> tensors = tensors_of(shape, counted->program_base());
  for (const GgufTensor& t : tensors) {
    if (can_quantize(t.type)) continue;
    return usage_error(
        fmt::format("{}: {} columns of '{}' are no whole blocks of its type", shape.name, t.cols(), t.name));
  }
  MadeFile out =
      RIDGE_TRY(MadeFile::create(metadata_of(shape, architecture_of(shape), options.name), tensors, options));
  RowPool pool;
  for (const GgufTensor& t : tensors) RIDGE_TRY(write_tensor(t, pool, out));
  return MadeModel(RIDGE_TRY(std::move(out).spool()));
}

Result<ModelShape> shape_of(const Model& model) {
  const ModelConfig& c = model.config();
  const GgufTensor* up = model.file().find("blk.0.ffn_up.weight");
  bool plain = up != nullptr && c.key_dim == c.value_dim && model.file().find("blk.0.ffn_gate.weight") != nullptr;
  for (const KvLayer& layer : model.kv_layers()) plain = plain && layer.window == 0 && layer.kv_heads == c.kv_heads;
  if (!plain) {
    return usage_error(
        fmt::format("{}: variants of its attention need a plain model (no latents, windows or experts, "
                    "three matrices); give one, or a shape",
                    c.name.empty() ? "this " + c.architecture : c.name));
  }
  ModelShape s{.name = c.name,
               .layers = c.layers,
               .width = c.width,
               .ffn = c.ffn,
               .vocabulary = c.vocabulary,
               .heads = c.heads,
               .kv_heads = c.kv_heads,
               .head_dim = c.key_dim,
               .tied = model.tied(),
               .context = c.context};
  // The nearest type that can be made.
  auto makeable = [](Type type) {
    if (can_quantize(type)) return type;
    const TypeInfo& info = type_info(type);
    return 8.0 * info.bytes / info.block < 5 ? Type::Q4_0 : Type::Q8_0;
  };
  s.type = makeable(up->type);
  s.head_type = makeable(model.head().type);
  return s;
}

}  // namespace ridge
