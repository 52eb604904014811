// Models made in order to be measured, as GGUF files without a name: the same model with fewer layers, or more by
// repeating them; its weights in another type; or a shape with random weights. What a sweep varies is then run by the
// engine as any model is.
//
// Not for: models to keep (quality at few bits wants more care), or text (a made model has no tokenizer).
//
//   MadeModel half = RIDGE_TRY(change_model("model.gguf", {.layers = 15}, {.name = "half"}));
//   MadeModel random = RIDGE_TRY(random_model(*find_shape("llama-3.2-1b"), {.name = "random"}));
//   Engine::open({.path = half.path()})
#pragma once

#include <atomic>
#include <optional>
#include <string>

#include "analyze/shape_model.h"
#include "base/result.h"
#include "format/spool_file.h"

namespace ridge {

// The file is gone with the object, and with the process however that ends.
class MadeModel {
 public:
  explicit MadeModel(SpoolFile file) : file_(std::move(file)) {}
  std::string path() const { return file_.path(); }
  uint64_t bytes() const { return file_.size(); }

 private:
  SpoolFile file_;
};

struct MadeOptions {
  std::string name;         // general.name of the model
  std::string folder = {};  // where the file lies: the cache folder, else where temporary files do
  // Set by Ctrl-C: then making ends with an I/O error, and nothing is left.
  const std::atomic<bool>* interrupted = nullptr;
};

struct ModelChange {
  uint32_t layers = 0;       // 0: as many as there are; layer i is layer i mod n of the model
  std::optional<Type> type;  // of all matrices but routers; those whose columns are no whole blocks become F16
};

// Takes no more memory than the file's header and three MiB. Bad input for packs, and for models whose layers differ in
// more than their numbers say (leading dense layers keep their count). `type` is one that can_quantize().
Result<MadeModel> change_model(const std::string& path, const ModelChange& change, const MadeOptions& options);

// Usage error with the reason, if no architecture that Ridge runs has this shape, or a type cannot be made.
Result<void> check_random_model(const ModelShape& shape);
// Rows of each matrix repeat a few random ones: no speed depends on values.
Result<MadeModel> random_model(const ModelShape& shape, const MadeOptions& options);

// The shape of a model that runs, for variants of it. Usage error for experts, windows, and what a shape cannot say.
Result<ModelShape> shape_of(const Model& model);

}  // namespace ridge
