#include "model/model.h"

#include <fmt/format.h>

#include "format/quote.h"
#include "model/builder.h"
#include "model/model_file.h"
#include "model/outline.h"

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
  std::string name = RIDGE_TRY(file.metadata().require_string("general.architecture"));
  for (const Architecture& a : architectures()) {
    if (a.name != name) continue;
    ModelBuilder builder(std::move(file), options);
    return a.make(builder);
  }
  return bad_input(
      fmt::format("{}: the architecture {} is not one that Ridge runs ({}); README.md names what else to use", where,
                  quoted(name), architecture_names()));
}

Result<std::unique_ptr<Model>> Model::open(const std::string& path, const ModelOptions& options) {
  ModelFile file = RIDGE_TRY(open_model_file(path, Verify::data));
  auto model = RIDGE_TRY(from_gguf(std::move(file.header), options));
  for (StoredTensor& t : model->tensors_) t.layout = file.layout(t.name);
  return model;
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
  Outline outline(*this, shape, {.slot_bytes = 0, .exact = exact});
  forward(outline);
  return outline.workspace_floats();
}

size_t Model::latent_floats(const PassShape& shape, bool exact) const {
  Outline outline(*this, shape, {.slot_bytes = 0, .exact = exact});
  forward(outline);
  return outline.latent_floats();
}

std::vector<TensorId> Model::gathered() const {
  std::vector<TensorId> ids = {embedding_.id};
  for (const PendingVector& v : pending_vectors_) ids.push_back(v.id);
  return ids;
}

Result<void> Model::load_vectors(WeightSource& source) {
  vectors_.resize(vector_floats_);
  const uint32_t row = 0;
  for (const PendingVector& v : pending_vectors_) {
    RIDGE_TRY(source.gather(v.id, {&row, 1}, Matrix<float>(vectors_.data() + v.offset, 1, v.size)));
  }
  return {};
}

}  // namespace ridge
