// A model: its configuration, its tensors, and the forward pass that its architecture's file writes down.
//
// Not for: weights in memory (memory/), conversations (engine/).
//
//   auto model = RIDGE_TRY(Model::open("model.gguf"));
//   Program program = model->program({.tokens = 1}, {.slot_bytes = 8 << 20});
//   model->forward(ops);
//
// An architecture registers itself in one place: one row in registry.cpp (docs/models/README.md shows how).
// Immutable after load_vectors(); then thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "format/gguf.h"
#include "format/neuron_bundles.h"
#include "kernels/rope_table.h"
#include "memory/weight_source.h"
#include "model/adapters.h"
#include "model/ops.h"
#include "program/program.h"

namespace ridge {

// What every decoder has; what only one architecture knows stays in its file.
struct ModelConfig {
  std::string architecture, name;
  uint32_t layers = 0, width = 0, ffn = 0, vocabulary = 0;
  uint32_t heads = 0, kv_heads = 0, key_dim = 0, value_dim = 0;
  uint32_t context = 0;  // trained
  float norm_eps = 1e-5f;
};

// What one layer keeps per position.
struct KvLayer {
  uint32_t kv_heads = 0, key_dim = 0, value_dim = 0;
  uint32_t window = 0;  // 0: the whole context
};

// Angles of one kind of rotary embedding; the factors are a resident vector.
struct RopeTable {
  RopeConfig config;
  VectorRef factors;  // divide the angle of each pair, may be empty
};

struct ProgramOptions {
  uint64_t slot_bytes = 0;  // no block is larger; 0: parts are never cut
  bool exact = false;       // count float operations instead of int8 ones
  bool record = true;       // false: only the workspace is of interest, the program stays empty
  KvType kv_type = KvType::f16;
};

// Options of the user that change what the forward pass is.
struct ModelOptions {
  uint64_t context = 0;        // the context that will be used, 0: the model's own (long-context rope variants)
  NeuronBundles bundles = {};  // of the file, where it is a pack that has them
  std::vector<LoraFile> adapters = {};
};

class Model {
 public:
  virtual ~Model() = default;

  // A .gguf file (any part of a split one) or a .ridge pack. Bad input names the tensor or key that is wrong;
  // an unknown architecture's message names the supported ones.
  static Result<std::unique_ptr<Model>> open(const std::string& path, const ModelOptions& options = {});
  static Result<std::unique_ptr<Model>> from_gguf(Gguf file, const ModelOptions& options = {});

  virtual void forward(Ops& ops) const = 0;

  const ModelConfig& config() const { return config_; }
  const Gguf& file() const { return file_; }
  Gguf& file() { return file_; }
  const std::vector<KvLayer>& kv_layers() const { return kv_layers_; }
  const std::vector<RopeTable>& rope_tables() const { return rope_tables_; }
  const Weight& embedding() const { return embedding_; }
  const Weight& head() const { return head_; }
  bool tied() const { return embedding_.id == head_.id; }

  // Everything one pass visits, by running forward() on an Outline.
  Program program(const PassShape& shape, const ProgramOptions& options) const;
  // Floats of workspace that a pass of this shape takes at most.
  size_t workspace_floats(const PassShape& shape, bool exact) const;
  // Floats of scratch per thread that latent attention takes in such a pass; 0 where there is none.
  size_t latent_floats(const PassShape& shape, bool exact) const;
  // The kernels' operations that such a pass calls, products and packing aside: those follow from the weights' types.
  OpSet operations(const PassShape& shape, bool exact, KvType kv_type) const;
  Program program_base() const;  // files and tensors alone
  // What a source's gather() will be asked for: the embedding and the vectors.
  std::vector<TensorId> gathered() const;

  // What changes products, in memory beside the weights; empty without ModelOptions::adapters.
  const AdapterSet& adapters() const { return adapters_; }

  // Norms, biases and factors: read once through the source (its gather()), kept as floats; and the adapters.
  Result<void> load_vectors(WeightSource& source);
  uint64_t vector_bytes() const { return vector_floats_ * sizeof(float); }
  // Of rope_tables()[table], with its factors; after load_vectors().
  std::span<const double> rope_frequencies(size_t table) const { return rope_frequencies_[table]; }
  std::span<const float> vector(VectorRef ref) const { return {vectors_.data() + ref.offset, ref.size}; }

 protected:
  friend class ModelBuilder;
  // Of a pack: which tensors lie as panels, and where the matrices of a stack begin then. `file` may have lost its
  // header.
  void place_panels(const struct ModelFile& file);

  ModelConfig config_;
  Gguf file_;
  std::vector<StoredTensor> tensors_;
  std::vector<std::string> files_;
  std::vector<KvLayer> kv_layers_;
  std::vector<RopeTable> rope_tables_;
  Weight embedding_, head_;

 private:
  Result<void> open_adapters(std::span<const LoraFile> files);

  struct PendingVector {
    TensorId id;
    uint32_t offset, size, rows;  // rows × size floats
  };
  std::vector<PendingVector> pending_vectors_;
  uint64_t vector_floats_ = 0;
  std::vector<float> vectors_;
  std::vector<std::vector<double>> rope_frequencies_;
  AdapterSet adapters_;
};

// One row per architecture.
struct Architecture {
  std::string_view name;  // general.architecture
  Result<std::unique_ptr<Model>> (*make)(class ModelBuilder& builder);
  bool neurons_rest = false;  // those whose gate is 0 need not be read: a pack may have them in bundles
};
std::span<const Architecture> architectures();

}  // namespace ridge
