// Reads a model file for an architecture: configuration keys with their defaults, tensors with their shapes checked.
//
//   ModelBuilder b(std::move(gguf), options);
//   Weight q = RIDGE_TRY(b.matrix("blk.0.attn_q.weight", {.rows = heads * dim, .cols = width}));
//   VectorRef bias = RIDGE_TRY(b.optional_vector("blk.0.attn_q.bias", heads * dim));
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "model/model.h"

namespace ridge {

struct MatrixShape {
  uint32_t rows = 0, cols = 0;
};

class ModelBuilder {
 public:
  ModelBuilder(Gguf file, const ModelOptions& options);

  // Keys are written without the architecture's prefix: "attention.head_count".
  std::string key(std::string_view suffix) const;
  Result<uint32_t> require(std::string_view suffix) const;  // ≥ 1, ≤ 2^31
  Result<uint32_t> integer(std::string_view suffix, uint32_t fallback) const;
  Result<float> number(std::string_view suffix, float fallback) const;
  Result<std::string> text(std::string_view suffix, std::string fallback) const;

  // What all decoders share; vocabulary from token_embd. Fails if head counts do not divide.
  Result<ModelConfig> decoder_config();

  Result<Weight> matrix(const std::string& name, MatrixShape shape);
  Result<Weight> optional_matrix(const std::string& name, MatrixShape shape);  // absent: an empty Weight
  Result<VectorRef> vector(const std::string& name, uint32_t size);
  Result<VectorRef> optional_vector(const std::string& name, uint32_t size);
  // A stack of `count` matrices of this shape (the experts of a layer): the weight of the first; that of number n has
  // the id id + n.
  Result<Weight> stack(const std::string& name, MatrixShape shape, uint32_t count);
  // The neurons of layer `layer` in the bundles of a pack; nothing where they lie in none. `down` is [width, neurons];
  // `gated`: the up matrix lies in the bundles as well.
  Result<NeuronGroups> neuron_groups(uint32_t layer, MatrixShape down, bool gated);
  // `count` vectors of `size` floats, one after the other.
  Result<VectorRef> vectors(const std::string& name, uint32_t size, uint32_t count);
  // Embedding, output norm and head (absent: tied to the embedding).
  Result<void> ends(Model& model, VectorRef& output_norm);

  const Metadata& metadata() const { return file_.metadata(); }
  const Gguf& file() const { return file_; }
  const ModelOptions& options() const { return options_; }

  // Hands the file and the tensors to the model; names the tensors that it does not use.
  Result<std::unique_ptr<Model>> finish(std::unique_ptr<Model> model, ModelConfig config);

 private:
  Error wrong(std::string_view suffix, std::string_view what) const;
  Result<TensorId> store(const GgufTensor& tensor, uint64_t rows);
  Result<VectorRef> keep(const GgufTensor& tensor, uint32_t size, uint32_t count);
  Error missing(const std::string& name, std::string_view where) const;

  Gguf file_;
  ModelOptions options_;
  std::string architecture_;
  std::vector<StoredTensor> tensors_;
  std::vector<Model::PendingVector> vectors_;
  uint64_t vector_floats_ = 0;
  std::vector<uint8_t> used_;  // by tensor of the file
};

}  // namespace ridge
