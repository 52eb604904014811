// A model of a GGUF file as libtorch runs it, its weights frozen and in the types of the file: a matrix becomes floats
// when it is multiplied with, forwards and again backwards, so that one matrix at a time takes 4 bytes an element.
// Beside each matrix that is a target lie the two narrow ones that learn.
//
// Not for: models that train whole (student.h), or architectures other than llama, arcee and reglu-llama.
//
//   auto model = RIDGE_TRY(FrozenModel::open("model.gguf", "--context"));      // headers
//   RIDGE_TRY(model->load());
//   model->add_adapters(job);
//   torch::Tensor logits = model->forward(ids);                               // ids: int64 [batch, window]
#pragma once

#include <torch/torch.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "distill/torch/student.h"
#include "distill/tune.h"
#include "model/model.h"

namespace ridge::distill {

// [rows, cols] in file layout.
struct FrozenMatrix {
  Type type = Type::F32;
  int64_t rows = 0, cols = 0;
  std::vector<uint8_t> bytes;

  torch::Tensor floats() const;                           // of F32 no copy
  torch::Tensor rows_of(const torch::Tensor& ids) const;  // [ids, cols], float
};

class FrozenModel {
 public:
  // Bad input for another architecture, a pack, or tensors that this trainer does not know.
  static Result<std::unique_ptr<FrozenModel>> open(const std::string& path);

  // Of the tensors, before any is read; adapters as the job wants them.
  TuneSizes sizes(const TuneJob& job) const;
  Result<void> load();
  // A uniform in ±1/√cols from our own generator, B zero: what is added begins at 0.
  void add_adapters(const TuneJob& job);

  torch::Tensor forward(const torch::Tensor& ids) const;  // logits, [batch, window, vocabulary]

  // Mean cross-entropy of the next tokens, nats; targets like ids: int64 [batch, window].
  double loss(const torch::Tensor& ids, const torch::Tensor& targets) const;
  // The same, and its gradient is added to those of the parameters (not where the loss is no finite number). Only the
  // states between blocks are kept: each block is run again on the way back, and the head works on a few positions at a
  // time. So activations take a block's room instead of the model's, for a third more operations.
  double learn(const torch::Tensor& ids, const torch::Tensor& targets) const;

  const ModelConfig& config() const { return model_->config(); }
  const Metadata& metadata() const { return model_->file().metadata(); }
  // A and B by turns: "blk.0.attn_q.weight.lora_a" [rank, cols], ".lora_b" [rows, rank].
  std::vector<Parameter>& parameters() { return parameters_; }
  const std::vector<Parameter>& parameters() const { return parameters_; }

 private:
  struct Product {
    FrozenMatrix weight;
    torch::Tensor down, up;  // of the adapter, undefined without one
  };
  struct Layer {
    torch::Tensor attn_norm, ffn_norm;
    Product q, k, v, out, gate, up, down;
  };
  // A tensor of the file and where it goes.
  struct Place {
    const GgufTensor* tensor = nullptr;
    FrozenMatrix* matrix = nullptr;
    torch::Tensor* vector = nullptr;
  };
  Result<void> place_all();
  std::vector<std::pair<std::string, Product*>> targets(const TuneJob& job);
  void make_rope(int64_t window) const;
  torch::Tensor times(const torch::Tensor& x, const Product& p) const;
  torch::Tensor norm(const torch::Tensor& x, const torch::Tensor& weight) const;
  torch::Tensor rotate(const torch::Tensor& x) const;
  torch::Tensor attention(const Layer& w, const torch::Tensor& x) const;
  torch::Tensor feed_forward(const Layer& w, const torch::Tensor& x) const;
  torch::Tensor block(const Layer& w, const torch::Tensor& x) const;
  // The loss of the last states; their gradient into `slope`, if there is one.
  double head_loss(const torch::Tensor& x, const torch::Tensor& targets, torch::Tensor* slope) const;

  std::string path_;
  std::unique_ptr<Model> model_;
  FfnKind ffn_ = FfnKind::swiglu;
  std::vector<Place> places_;
  FrozenMatrix embedding_, head_;
  bool tied_ = false;
  torch::Tensor output_norm_, rope_factors_;
  std::vector<Layer> layers_;
  std::vector<Parameter> parameters_;
  double added_ = 0;                 // alpha / rank
  mutable torch::Tensor cos_, sin_;  // [window, rot / 2], of the longest window so far
  mutable torch::Tensor mask_;       // −∞ above the diagonal
};

}  // namespace ridge::distill
