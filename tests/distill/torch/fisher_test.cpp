// The diagonal of the Fisher information against its definition: the mean over all labels of squared scores.
#include "distill/torch/fisher.h"

#include <gtest/gtest.h>

namespace ridge::distill {
namespace {

Student made_student(FfnKind kind) {
  Student student(
      {.vocabulary = 7, .layers = 1, .dim = 8, .heads = 2, .kv_heads = 1, .ffn = 12, .context = 4, .ffn_kind = kind});
  student.randomise(5);
  return student;
}

// `rows` windows that all begin with the same token.
Batch windows_of(int64_t rows, int64_t tokens) {
  Batch batch;
  batch.inputs = torch::full({rows, tokens}, 3, torch::kInt64);
  batch.targets = torch::zeros({rows, tokens}, torch::kInt64);
  batch.weight = torch::ones({rows * tokens});
  return batch;
}

// Σ_y p(y) (∂ log p(y) / ∂w)² of a window of one token.
std::vector<torch::Tensor> by_definition(Student& student) {
  std::vector<torch::Tensor> sums;
  for (const Parameter& p : student.parameters()) sums.push_back(torch::zeros_like(p.value, torch::kFloat64));
  for (int64_t y = 0; y < student.shape().vocabulary; ++y) {
    for (Parameter& p : student.parameters()) p.value.mutable_grad() = torch::Tensor();
    const auto log_p = student.forward(windows_of(1, 1).inputs).logits[0][0].log_softmax(-1);
    log_p[y].backward();
    for (size_t i = 0; i < sums.size(); ++i) {
      const auto& gradient = student.parameters()[i].value.grad();
      if (gradient.defined()) sums[i] += log_p[y].exp().item<double>() * gradient.to(torch::kFloat64).pow(2);
    }
  }
  return sums;
}

class Fisher : public testing::TestWithParam<FfnKind> {};

TEST_P(Fisher, IsTheMeanOverLabelsOfSquaredScores) {
  Student student = made_student(GetParam());
  const std::vector<torch::Tensor> want = by_definition(student);
  const Batch batch = windows_of(4000, 1);
  const std::vector<torch::Tensor> got = fisher_diagonal(student, {&batch, 1}, 1);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    const double size = want[i].sum().item<double>();
    EXPECT_LE((got[i] - want[i]).abs().sum().item<double>(), 0.12 * size) << student.parameters()[i].name;
  }
}

TEST_P(Fisher, IsTheSameForTheSameSeedAndLeavesNoGradients) {
  Student student = made_student(GetParam());
  const Batch batch = windows_of(3, 4);
  const auto one = fisher_diagonal(student, {&batch, 1}, 1), two = fisher_diagonal(student, {&batch, 1}, 1),
             other = fisher_diagonal(student, {&batch, 1}, 2);
  EXPECT_TRUE(torch::equal(one[0], two[0]));
  EXPECT_FALSE(torch::equal(one[0], other[0]));
  for (const Parameter& p : student.parameters()) EXPECT_FALSE(p.value.grad().defined()) << p.name;
}

INSTANTIATE_TEST_SUITE_P(Kinds, Fisher, testing::Values(FfnKind::swiglu, FfnKind::reglu, FfnKind::relu2));

}  // namespace
}  // namespace ridge::distill
