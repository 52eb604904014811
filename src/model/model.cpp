#include "model/model.h"

#include <fmt/format.h>

#include <numeric>

#include "format/quote.h"
#include "model/builder.h"
#include "model/closest.h"
#include "model/image_files.h"
#include "model/model_file.h"
#include "model/outline.h"
#include "tensor/panel.h"

namespace ridge {
namespace {

std::string architecture_names() {
  std::string names;
  for (const Architecture& a : architectures()) names += fmt::format("{}{}", names.empty() ? "" : ", ", a.name);
  return names;
}

}  // namespace

Result<std::unique_ptr<Model>> Model::from_gguf(Gguf file, const ModelOptions& options) {
  std::string where = file.metadata().where;
  if (holds_diffusion(file)) {
    return bad_input(
        fmt::format("{}: is an image model, which `ridge image --model` draws with: give a language model", where));
  }
  std::string name = RIDGE_TRY(file.metadata().require_string("general.architecture"));
  if (RIDGE_TRY(file.metadata().string("general.type")).value_or("") == "adapter") {
    return bad_input(
        fmt::format("{}: is an adapter, no model: name the model that it was trained on, and this with --lora", where));
  }
  for (const Architecture& a : architectures()) {
    if (a.name != name) continue;
    ModelBuilder builder(std::move(file), options);
    auto model = RIDGE_TRY(a.make(builder));
    RIDGE_TRY(model->open_adapters(options.adapters));
    return model;
  }
  std::string_view closest = closest_architecture(name, file);
  std::string advice =
      closest.empty()
          ? std::string("it looks like no text decoder; use llama.cpp for it")
          : fmt::format("the closest it runs is '{}': take a model of that one, or llama.cpp for this", closest);
  return bad_input(
      fmt::format("{}: the architecture {} is not one that Ridge runs ({}); {}; README.md, \"What is not "
                  "in Ridge\", has more",
                  where, in_quotes(name), architecture_names(), advice));
}

Result<std::unique_ptr<Model>> Model::open(const std::string& path, const ModelOptions& options) {
  ModelFile file = RIDGE_TRY(open_model_file(path, Verify::data));
  ModelOptions with_bundles = options;
  with_bundles.bundles = file.bundles;
  auto model = RIDGE_TRY(from_gguf(std::move(file.header), with_bundles));
  model->place_panels(file);
  return model;
}

void Model::place_panels(const ModelFile& file) {
  const GgufTensor* named = nullptr;
  for (StoredTensor& t : tensors_) {
    if (!t.name.empty()) named = file_.find(t.name);
    if (t.layout == Layout::panels) continue;  // in a bundle
    t.layout = file.layout(named->name);
    if (t.layout == Layout::rows) continue;
    // A matrix of a stack: its rows are whole panels, and so are those before it.
    const uint64_t first = named->offset;
    const uint64_t rows_before = (t.offset - first) / row_bytes(t.type, t.cols);
    t.offset = first + panels_bytes(t.type, rows_before, t.cols);
  }
}

Program Model::program_base() const {
  Program p;
  p.files = files_;
  p.tensors = tensors_;
  return p;
}

Program Model::program(const PassShape& shape, const ProgramOptions& options) const {
  Outline outline(*this, shape, options);
  forward(outline);
  return std::move(outline).finish();
}

size_t Model::workspace_floats(const PassShape& shape, bool exact) const {
  Outline outline(*this, shape, {.slot_bytes = 0, .exact = exact, .record = false});
  forward(outline);
  return outline.workspace_floats();
}

size_t Model::latent_floats(const PassShape& shape, bool exact) const {
  Outline outline(*this, shape, {.slot_bytes = 0, .exact = exact, .record = false});
  forward(outline);
  return outline.latent_floats();
}

OpSet Model::operations(const PassShape& shape, bool exact, KvType kv_type) const {
  Outline outline(*this, shape, {.slot_bytes = 0, .exact = exact, .record = false, .kv_type = kv_type});
  forward(outline);
  return outline.operations();
}

std::vector<TensorId> Model::gathered() const {
  std::vector<TensorId> ids = {embedding_.id};
  for (const PendingVector& v : pending_vectors_) ids.push_back(v.id);
  return ids;
}

// Which matrices are plain products a pass without numbers tells.
Result<void> Model::open_adapters(std::span<const LoraFile> files) {
  if (files.empty()) return {};
  Outline outline(*this, {.tokens = 1}, {.record = false});
  forward(outline);
  std::vector<AdapterTarget> targets;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const StoredTensor& t = tensors_[i];
    if (t.name.empty()) continue;  // the later matrices of a stack
    const auto id = static_cast<TensorId>(i);
    targets.push_back({.id = id,
                       .name = t.name,
                       .rows = t.rows,
                       .cols = t.cols,
                       .product = id != embedding_.id && outline.is_product(id)});
  }
  adapters_ = RIDGE_TRY(AdapterSet::open(files, targets, config_.architecture));
  return {};
}

Result<void> Model::load_vectors(WeightSource& source) {
  RIDGE_TRY(adapters_.load());
  vectors_.resize(vector_floats_);
  std::vector<uint32_t> rows;
  for (const PendingVector& v : pending_vectors_) {
    rows.resize(v.rows);
    std::iota(rows.begin(), rows.end(), 0);
    RIDGE_TRY(source.gather(v.id, rows, Matrix<float>(vectors_.data() + v.offset, v.rows, v.size)));
  }
  rope_frequencies_.clear();
  for (const RopeTable& rope : rope_tables_) {
    RopeConfig config = rope.config;
    if (rope.factors) config.pair_factors = vector(rope.factors).data();
    rope_frequencies_.push_back(ridge::rope_frequencies(config));
  }
  return {};
}

}  // namespace ridge
