#include "model/builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "base/units.h"
#include "format/quote.h"

namespace ridge {
namespace {

constexpr uint64_t kMostRows = uint64_t{1} << 31;
// More layers than any model has; a hostile file must not make us loop over 2^31 of them.
constexpr uint32_t kMostLayers = 4096;

std::string shape_text(const GgufTensor& t) {
  std::string text = "[";
  for (uint32_t d = 0; d < t.dims; ++d) text += fmt::format("{}{}", d ? ", " : "", t.shape[d]);
  return text + "]";
}

}  // namespace

ModelBuilder::ModelBuilder(Gguf file, const ModelOptions& options) : file_(std::move(file)), options_(options) {
  architecture_ = file_.metadata().string("general.architecture").ok()
                      ? file_.metadata().string("general.architecture").value().value_or("")
                      : "";
  used_.resize(file_.tensors().size());
}

std::string ModelBuilder::key(std::string_view suffix) const { return fmt::format("{}.{}", architecture_, suffix); }

Error ModelBuilder::wrong(std::string_view suffix, std::string_view what) const {
  return bad_input(fmt::format("{}: key '{}' {}", file_.metadata().where, key(suffix), what));
}

Result<uint32_t> ModelBuilder::require(std::string_view suffix) const {
  uint64_t value = RIDGE_TRY(file_.metadata().require_uint(key(suffix)));
  if (value == 0 || value >= kMostRows) return wrong(suffix, fmt::format("is {}, expected 1 to 2^31 - 1", value));
  return static_cast<uint32_t>(value);
}

Result<uint32_t> ModelBuilder::integer(std::string_view suffix, uint32_t fallback) const {
  auto value = RIDGE_TRY(file_.metadata().uint(key(suffix)));
  if (!value) return fallback;
  if (*value >= kMostRows) return wrong(suffix, fmt::format("is {}, expected less than 2^31", *value));
  return static_cast<uint32_t>(*value);
}

Result<float> ModelBuilder::number(std::string_view suffix, float fallback) const {
  auto value = RIDGE_TRY(file_.metadata().number(key(suffix)));
  if (!value) return fallback;
  if (!(*value > -1e30 && *value < 1e30)) return wrong(suffix, "is not a finite number");
  return static_cast<float>(*value);
}

Result<std::string> ModelBuilder::text(std::string_view suffix, std::string fallback) const {
  auto value = RIDGE_TRY(file_.metadata().string(key(suffix)));
  return value ? *value : fallback;
}

Result<ModelConfig> ModelBuilder::decoder_config() {
  ModelConfig c;
  c.architecture = architecture_;
  c.name = RIDGE_TRY(file_.metadata().string("general.name")).value_or("");
  c.layers = RIDGE_TRY(require("block_count"));
  if (c.layers > kMostLayers)
    return wrong("block_count", fmt::format("is {}, expected at most {}", c.layers, kMostLayers));
  c.width = RIDGE_TRY(require("embedding_length"));
  c.context = RIDGE_TRY(require("context_length"));
  auto uniform = [&](std::string_view suffix) -> Result<uint32_t> {
    auto values = RIDGE_TRY(file_.metadata().uints(key(suffix)));
    if (values.empty()) return uint32_t{0};
    for (uint64_t v : values) {
      if (v != values[0]) return wrong(suffix, "differs from layer to layer, which Ridge does not support");
    }
    if (values[0] == 0 || values[0] >= kMostRows)
      return wrong(suffix, fmt::format("is {}, expected 1 to 2^31", values[0]));
    return static_cast<uint32_t>(values[0]);
  };
  c.ffn = RIDGE_TRY(uniform("feed_forward_length"));
  c.heads = RIDGE_TRY(uniform("attention.head_count"));
  if (c.ffn == 0) return wrong("feed_forward_length", "is missing");
  if (c.heads == 0) return wrong("attention.head_count", "is missing");
  c.kv_heads = RIDGE_TRY(uniform("attention.head_count_kv"));
  if (c.kv_heads == 0) c.kv_heads = c.heads;
  if (c.heads % c.kv_heads != 0) {
    return wrong("attention.head_count", fmt::format("is {}, no multiple of head_count_kv {}", c.heads, c.kv_heads));
  }
  uint32_t head_dim = c.width / c.heads;
  c.key_dim = RIDGE_TRY(integer("attention.key_length", head_dim));
  c.value_dim = RIDGE_TRY(integer("attention.value_length", head_dim));
  if (c.key_dim == 0)
    return wrong("attention.key_length",
                 fmt::format("gives heads of 0 (width {}, {})", c.width, counted(c.heads, "head")));
  if (c.value_dim == 0)
    return wrong("attention.value_length",
                 fmt::format("gives heads of 0 (width {}, {})", c.width, counted(c.heads, "head")));
  if (uint64_t{c.heads} * std::max(c.key_dim, c.value_dim) >= kMostRows) {
    return wrong("attention.head_count", "times the head size is beyond any model");
  }
  c.norm_eps = RIDGE_TRY(number("attention.layer_norm_rms_epsilon", 1e-5f));
  const GgufTensor* embedding = file_.find("token_embd.weight");
  if (embedding == nullptr) {
    return bad_input(fmt::format("{}: tensor 'token_embd.weight' is missing: the file holds no complete model",
                                 file_.metadata().where));
  }
  if (embedding->rows() >= kMostRows)
    return bad_input(fmt::format("{}: tensor 'token_embd.weight' has too many rows", file_.metadata().where));
  c.vocabulary = static_cast<uint32_t>(embedding->rows());
  return c;
}

Result<TensorId> ModelBuilder::store(const GgufTensor& tensor, uint64_t rows) {
  used_[static_cast<size_t>(&tensor - file_.tensors().data())] = 1;
  StoredTensor stored;
  stored.name = tensor.name;
  stored.type = tensor.type;
  stored.rows = static_cast<uint32_t>(rows);
  stored.cols = static_cast<uint32_t>(tensor.cols());
  stored.file = tensor.file;
  stored.offset = tensor.offset;
  tensors_.push_back(std::move(stored));
  return static_cast<TensorId>(tensors_.size() - 1);
}

Result<Weight> ModelBuilder::optional_matrix(const std::string& name, MatrixShape shape) {
  const GgufTensor* t = file_.find(name);
  if (t == nullptr) return Weight{};
  if (t->cols() != shape.cols || t->rows() != shape.rows) {
    return bad_input(fmt::format("{}: tensor '{}' has shape {}, expected [{}, {}] by the file's own keys",
                                 file_.metadata().where, name, shape_text(*t), shape.cols, shape.rows));
  }
  Weight w;
  w.id = RIDGE_TRY(store(*t, shape.rows));
  w.rows = shape.rows;
  w.cols = shape.cols;
  w.type = t->type;
  w.present = true;
  return w;
}

Result<Weight> ModelBuilder::matrix(const std::string& name, MatrixShape shape) {
  Weight w = RIDGE_TRY(optional_matrix(name, shape));
  if (!w) return missing(name, " in every layer");
  return w;
}

Result<VectorRef> ModelBuilder::optional_vector(const std::string& name, uint32_t size) {
  const GgufTensor* t = file_.find(name);
  if (t == nullptr) return VectorRef{};
  if (t->elements() != size) {
    return bad_input(
        fmt::format("{}: tensor '{}' has shape {}, expected [{}]", file_.metadata().where, name, shape_text(*t), size));
  }
  if (t->rows() != 1) {
    return bad_input(fmt::format("{}: tensor '{}' has shape {}, expected one row of {}", file_.metadata().where, name,
                                 shape_text(*t), size));
  }
  return keep(*t, size, 1);
}

Result<VectorRef> ModelBuilder::keep(const GgufTensor& tensor, uint32_t size, uint32_t count) {
  const uint64_t floats = uint64_t{size} * count;
  if (vector_floats_ + floats > UINT32_MAX)
    return bad_input(fmt::format("{}: its vectors are beyond any model", file_.metadata().where));
  const TensorId id = RIDGE_TRY(store(tensor, count));
  VectorRef ref{static_cast<uint32_t>(vector_floats_), static_cast<uint32_t>(floats)};
  vectors_.push_back({.id = id, .offset = ref.offset, .size = size, .rows = count});
  vector_floats_ += floats;
  return ref;
}

Result<VectorRef> ModelBuilder::vectors(const std::string& name, uint32_t size, uint32_t count) {
  const GgufTensor* t = file_.find(name);
  if (t == nullptr) return missing(name, "");
  if (t->cols() != size || t->rows() != count) {
    return bad_input(fmt::format("{}: tensor '{}' has shape {}, expected [{}, {}]", file_.metadata().where, name,
                                 shape_text(*t), size, count));
  }
  return keep(*t, size, count);
}

Result<Weight> ModelBuilder::stack(const std::string& name, MatrixShape shape, uint32_t count) {
  const GgufTensor* t = file_.find(name);
  if (t == nullptr) return missing(name, " in every layer");
  if (t->shape[0] != shape.cols || t->shape[1] != shape.rows || t->shape[2] * t->shape[3] != count) {
    return bad_input(fmt::format("{}: tensor '{}' has shape {}, expected [{}, {}, {}] by the file's own keys",
                                 file_.metadata().where, name, shape_text(*t), shape.cols, shape.rows, count));
  }
  Weight w{.rows = shape.rows, .cols = shape.cols, .type = t->type, .present = true};
  const uint64_t bytes = shape.rows * row_bytes(t->type, shape.cols);
  for (uint32_t n = 0; n < count; ++n) {
    const TensorId id = RIDGE_TRY(store(*t, shape.rows));
    if (n == 0) {
      w.id = id;
      continue;
    }
    tensors_[id].offset += n * bytes;
    tensors_[id].name.clear();
  }
  return w;
}

Result<NeuronGroups> ModelBuilder::neuron_groups(uint32_t layer, MatrixShape down, bool gated) {
  const NeuronBundles& bundles = options_.bundles;
  const BundledMatrices m = matrices_of_layer(file_, layer);
  if (m.down == nullptr || !bundles.holds(m.down->name) || gated != (m.up != nullptr)) return NeuronGroups{};
  const std::optional<BundleShape> shape = bundle_shape(m, bundles.neurons, bundles.align);
  if (!shape || m.down->rows() != down.rows || m.down->cols() != down.cols) {
    return bad_input(fmt::format("{}: tensor '{}' has shape {}, expected [{}, {}] by the file's own keys",
                                 file_.metadata().where, m.down->name, shape_text(*m.down), down.cols, down.rows));
  }
  NeuronGroups groups{.count = shape->groups, .neurons = shape->neurons};
  if (bundles.touched_per_mille > 0) groups.touched = bundles.touched_per_mille / 1000.0;
  if (const NeuronOrder* order = bundles.order(layer); order != nullptr && order->touched.size() == groups.count) {
    double sum = 0;
    for (uint32_t g = 0; g < groups.count; ++g) sum += groups.touched_by_group.emplace_back(order->touch(g));
    groups.touched = sum / groups.count;
  }
  auto add = [&](const GgufTensor& t, uint32_t rows, uint32_t cols, uint64_t inside) -> Result<Weight> {
    Weight w{.rows = rows, .cols = cols, .type = t.type, .present = true};
    for (uint32_t g = 0; g < shape->groups; ++g) {
      const TensorId id = RIDGE_TRY(store(t, rows));
      if (g == 0) w.id = id;
      if (g > 0) tensors_[id].name.clear();
      tensors_[id].cols = cols;
      tensors_[id].offset = t.offset + g * shape->stride + inside;
      tensors_[id].layout = Layout::panels;
    }
    return w;
  };
  if (m.up != nullptr) groups.up = RIDGE_TRY(add(*m.up, shape->neurons, down.rows, 0));
  groups.down = RIDGE_TRY(add(*m.down, down.rows, shape->neurons, shape->up_bytes));
  return groups;
}

Error ModelBuilder::missing(const std::string& name, std::string_view where) const {
  return bad_input(fmt::format("{}: tensor '{}' is missing: the architecture '{}' needs it{}", file_.metadata().where,
                               name, architecture_, where));
}

Result<VectorRef> ModelBuilder::vector(const std::string& name, uint32_t size) {
  VectorRef ref = RIDGE_TRY(optional_vector(name, size));
  if (!ref) return missing(name, "");
  return ref;
}

Result<void> ModelBuilder::ends(Model& model, VectorRef& output_norm) {
  const GgufTensor* t = file_.find("token_embd.weight");
  uint32_t vocabulary = static_cast<uint32_t>(t->rows());
  uint32_t width = static_cast<uint32_t>(RIDGE_TRY(require("embedding_length")));
  model.embedding_ = RIDGE_TRY(matrix("token_embd.weight", {.rows = vocabulary, .cols = width}));
  output_norm = RIDGE_TRY(vector("output_norm.weight", width));
  model.head_ = RIDGE_TRY(optional_matrix("output.weight", {.rows = vocabulary, .cols = width}));
  if (!model.head_) model.head_ = model.embedding_;
  return {};
}

Result<std::unique_ptr<Model>> ModelBuilder::finish(std::unique_ptr<Model> model, ModelConfig config) {
  for (size_t i = 0; i < used_.size(); ++i) {
    if (!used_[i])
      note(fmt::format("{}: tensor {} is not used by '{}'", file_.metadata().where, in_quotes(file_.tensors()[i].name),
                       architecture_));
  }
  model->config_ = std::move(config);
  model->tensors_ = std::move(tensors_);
  model->pending_vectors_ = std::move(vectors_);
  model->vector_floats_ = vector_floats_;
  for (const GgufFile& f : file_.files()) model->files_.push_back(f.path);
  model->file_ = std::move(file_);
  return model;
}

}  // namespace ridge
