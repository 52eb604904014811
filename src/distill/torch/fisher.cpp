#include "distill/torch/fisher.h"

#include <algorithm>

#include "text/rng.h"

namespace ridge::distill {
namespace {

// One label for each row of log-probabilities [T, vocabulary].
torch::Tensor draw_labels(const torch::Tensor& log_p, Rng& rng) {
  const auto sums = log_p.detach().to(torch::kFloat64).exp().cumsum(-1).contiguous();
  const int64_t rows = sums.size(0), vocabulary = sums.size(1);
  auto labels = torch::empty({rows}, torch::kInt64);
  for (int64_t t = 0; t < rows; ++t) {
    const double* row = sums.data_ptr<double>() + t * vocabulary;
    const double u = rng.uniform() * row[vocabulary - 1];
    labels.data_ptr<int64_t>()[t] = std::min(std::upper_bound(row, row + vocabulary, u) - row, vocabulary - 1);
  }
  return labels;
}

void clear_gradients(Student& student) {
  for (Parameter& p : student.parameters()) p.value.mutable_grad() = torch::Tensor();
}

}  // namespace

std::vector<torch::Tensor> fisher_diagonal(Student& student, std::span<const Batch> windows, uint64_t seed) {
  Rng rng(seed);
  std::vector<torch::Tensor> sums;
  for (const Parameter& p : student.parameters()) sums.push_back(torch::zeros_like(p.value, torch::kFloat64));
  double tokens = 0;
  for (const Batch& batch : windows) {
    for (int64_t row = 0; row < batch.inputs.size(0); ++row) {
      clear_gradients(student);
      const auto log_p = student.forward(batch.inputs.slice(0, row, row + 1)).logits[0].log_softmax(-1);
      log_p.gather(1, draw_labels(log_p, rng).unsqueeze(1)).sum().backward();
      torch::NoGradGuard off;
      for (size_t i = 0; i < sums.size(); ++i) {
        const auto& gradient = student.parameters()[i].value.grad();
        if (gradient.defined()) sums[i] += gradient.to(torch::kFloat64).pow(2);
      }
      tokens += static_cast<double>(log_p.size(0));
    }
  }
  clear_gradients(student);
  for (torch::Tensor& sum : sums) sum /= tokens;
  return sums;
}

}  // namespace ridge::distill
