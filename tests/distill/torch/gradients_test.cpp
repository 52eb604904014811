// Gradients against finite differences, in double: every loss with every kind of feed-forward part.
#include <gtest/gtest.h>

#include <functional>

#include "distill/torch/losses.h"
#include "distill/torch/student.h"

namespace ridge::distill {
namespace {

StudentShape gradient_shape(FfnKind kind) {
  return {.vocabulary = 11,
          .layers = 2,
          .dim = 8,
          .heads = 4,
          .kv_heads = 2,
          .ffn = 12,
          .context = 8,
          .ffn_kind = kind,
          .exit_layer = 1};
}

torch::Tensor made_up(std::vector<int64_t> sizes, double phase) {
  const auto n = torch::arange(torch::Tensor(torch::empty(sizes)).numel(), torch::kFloat64);
  return ((n * 0.7 + phase).sin() * 2).reshape(sizes);
}

using LossOf = std::function<torch::Tensor(const Student&)>;

// The derivative along a direction through all parameters, and a few single ones of each tensor.
void expect_gradients(Student& student, const LossOf& loss) {
  constexpr double kStep = 1e-5;
  for (Parameter& p : student.parameters()) {
    if (p.value.mutable_grad().defined()) p.value.mutable_grad().zero_();
  }
  loss(student).backward();
  torch::NoGradGuard off;
  const auto value = [&] { return loss(student).item<double>(); };
  for (Parameter& p : student.parameters()) {
    double* values = p.value.data_ptr<double>();
    const auto gradient = p.value.grad().defined() ? p.value.grad() : torch::zeros_like(p.value);
    const double* slopes = gradient.contiguous().data_ptr<double>();
    for (int64_t i = 0; i < p.value.numel(); i += 1 + p.value.numel() / 5) {
      const double before = values[i];
      values[i] = before + kStep;
      const double above = value();
      values[i] = before - kStep;
      const double below = value();
      values[i] = before;
      EXPECT_NEAR((above - below) / (2 * kStep), slopes[i], 1e-6 + 1e-5 * std::abs(slopes[i]))
          << p.name << "[" << i << "]";
    }
  }
}

class Gradients : public testing::TestWithParam<FfnKind> {
 protected:
  Gradients() : student_(gradient_shape(GetParam()), torch::kFloat64) {
    student_.randomise(3);
    ids_ = torch::tensor({{1, 5, 2, 9, 0, 7}, {4, 4, 10, 3, 8, 6}}, torch::kInt64);
    targets_ = torch::tensor({5, 2, 9, 0, 7, 1, 4, 10, 3, 8, 6, 2}, torch::kInt64);
    weight_ = torch::tensor({1, 1, 0, 1, 1, 1, 0, 0, 1, 1, 1, 1}, torch::kFloat64);
    teacher_ = made_up({12, 11}, 0.3);
  }
  Student student_;
  torch::Tensor ids_, targets_, weight_, teacher_;
};

TEST_P(Gradients, OfCrossEntropy) {
  expect_gradients(student_, [&](const Student& s) {
    return cross_entropy(s.forward(ids_).logits.flatten(0, 1), targets_, weight_);
  });
}

TEST_P(Gradients, OfEveryDivergence) {
  for (const Divergence kind :
       {Divergence::forward, Divergence::reverse, Divergence::skew_forward, Divergence::skew_reverse}) {
    SCOPED_TRACE(name_of(kind));
    const Losses losses{.kd = 1, .divergence = kind, .skew = 0.2, .temperature = 1.7};
    expect_gradients(student_, [&](const Student& s) {
      return divergence(losses, s.forward(ids_).logits.flatten(0, 1), teacher_, weight_);
    });
  }
}

TEST_P(Gradients, OfHiddenStatesAndTheEarlyExit) {
  const auto projection = made_up({5, 8}, 1.1), wanted = made_up({12, 5}, 2.2);
  expect_gradients(student_, [&](const Student& s) {
    const auto out = s.forward(ids_, {.hidden = true, .exit = true});
    return hidden_match(out.hidden[1].flatten(0, 1), projection, wanted, weight_) +
           cross_entropy(out.exit_logits.flatten(0, 1), targets_, weight_) * 0.3;
  });
}

TEST_P(Gradients, OfGates) {
  expect_gradients(student_, [&](const Student& s) { return gate_mean(s.forward(ids_, {.gates = true}).gates); });
}

INSTANTIATE_TEST_SUITE_P(Ffn, Gradients, testing::Values(FfnKind::swiglu, FfnKind::reglu, FfnKind::relu2),
                         [](const auto& kind) { return std::string(name_of(kind.param)); });

TEST(Divergences, MeetTheirLimits) {
  const auto logits = made_up({3, 11}, 0.1), teacher = made_up({3, 11}, 2.0),
             weight = torch::ones({3}, torch::kFloat64);
  const auto of = [&](Divergence kind, double skew, const torch::Tensor& q, const torch::Tensor& p) {
    return divergence({.divergence = kind, .skew = skew}, q, p, weight).item<double>();
  };
  for (const Divergence kind :
       {Divergence::forward, Divergence::reverse, Divergence::skew_forward, Divergence::skew_reverse}) {
    EXPECT_NEAR(of(kind, 0.1, teacher, teacher), 0, 1e-12);
    EXPECT_GT(of(kind, 0.1, logits, teacher), 0.01);
  }
  // Forward and reverse change places with their arguments; without skew the skewed ones are the plain ones.
  EXPECT_NEAR(of(Divergence::forward, 0, logits, teacher), of(Divergence::reverse, 0, teacher, logits), 1e-12);
  EXPECT_NEAR(of(Divergence::skew_forward, 0, logits, teacher), of(Divergence::forward, 0, logits, teacher), 1e-12);
  EXPECT_NEAR(of(Divergence::skew_reverse, 0, logits, teacher), of(Divergence::reverse, 0, logits, teacher), 1e-12);
  EXPECT_LT(of(Divergence::skew_forward, 0.5, logits, teacher), of(Divergence::forward, 0, logits, teacher));
}

TEST(Divergences, GiveTheGradientOfTheBook) {
  // Of T²·KL(p‖q) to the logits: T (softmax(q / T) − softmax(p / T)), over the positions.
  const double t = 2;
  auto logits = made_up({3, 11}, 0.1).set_requires_grad(true);
  const auto teacher = made_up({3, 11}, 2.0);
  divergence({.temperature = t}, logits, teacher, torch::ones({3}, torch::kFloat64)).backward();
  const auto want = ((logits / t).softmax(-1) - (teacher / t).softmax(-1)) * t / 3;
  EXPECT_TRUE(torch::allclose(logits.grad(), want, 1e-10, 1e-12));
}

}  // namespace
}  // namespace ridge::distill
