// The student as libtorch runs it: a pre-norm decoder whose tensors have the names and the layout of its GGUF file.
//
// Only files of src/distill/torch and its tests include this: libtorch's headers take half a minute to parse.
//
//   Student student(shape);
//   student.randomise(seed);
//   Student::Output out = student.forward(ids, {.gates = true});       // ids: int64 [batch, window]
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <string>
#include <vector>

#include "distill/job.h"
#include "distill/model_files.h"

namespace ridge::distill {

struct Parameter {
  std::string name;
  int layer = -1;       // stored layer, −1: of none
  torch::Tensor value;  // [rows, cols] or [cols]
};

struct ForwardNeeds {
  bool hidden = false, gates = false, exit = false;
};

class Student {
 public:
  explicit Student(const StudentShape& shape, torch::ScalarType type = torch::kFloat32);

  // Uniform numbers of our own generator: the same start on every machine and version of libtorch.
  void randomise(uint64_t seed);

  struct Output {
    torch::Tensor logits;               // [batch, window, vocabulary]
    torch::Tensor exit_logits;          // the same of the early exit, if asked for
    std::vector<torch::Tensor> hidden;  // after each run, [batch, window, dim]
    std::vector<torch::Tensor> gates;   // of each run, after ReLU (SiLU), [batch, window, ffn]
  };
  Output forward(const torch::Tensor& ids, const ForwardNeeds& needs = {}) const;

  const StudentShape& shape() const { return shape_; }
  std::vector<Parameter>& parameters() { return parameters_; }
  const std::vector<Parameter>& parameters() const { return parameters_; }
  // Views of the values, valid until they change. F32 students only.
  std::vector<NamedTensor> named() const;

 private:
  struct Layer {
    torch::Tensor attn_norm, q, k, v, out, ffn_norm, gate, up, down;
  };
  torch::Tensor add(const std::string& name, int layer, int64_t rows, int64_t cols);
  torch::Tensor attention(const Layer& w, const torch::Tensor& x) const;
  torch::Tensor feed_forward(const Layer& w, const torch::Tensor& x, std::vector<torch::Tensor>* gates) const;
  torch::Tensor rotate(const torch::Tensor& x) const;
  torch::Tensor head(const torch::Tensor& x) const;

  StudentShape shape_;
  torch::ScalarType type_;
  std::vector<Parameter> parameters_;
  std::vector<Layer> layers_;
  torch::Tensor embedding_, output_norm_, output_;
  torch::Tensor cos_, sin_;  // [context, head_dim / 2]
  torch::Tensor mask_;       // [context, context], −∞ above the diagonal
};

}  // namespace ridge::distill
