#include "distill/torch/adamw.h"

#include <cmath>

namespace ridge::distill {

AdamW::AdamW(const std::vector<torch::Tensor>& values) {
  torch::NoGradGuard off;
  for (const torch::Tensor& value : values) {
    states_.push_back({value, torch::zeros_like(value), torch::zeros_like(value), {}});
  }
}

double AdamW::step(const AdamStep& how) {
  constexpr double kMean = 0.9, kSquare = 0.95, kTiny = 1e-8;
  torch::NoGradGuard off;
  double squares = 0;
  for (const State& s : states_) {
    if (s.value.grad().defined()) squares += s.value.grad().pow(2).sum().item<double>();
  }
  const double norm = std::sqrt(squares);
  const double scale = std::isfinite(norm) ? std::min(1.0, how.clip / (norm + 1e-6)) : 0;
  const auto t = static_cast<double>(how.step);
  const double mean_bias = 1 - std::pow(kMean, t), square_bias = 1 - std::pow(kSquare, t);
  for (State& s : states_) {
    torch::Tensor gradient = s.value.mutable_grad();
    if (!gradient.defined()) continue;
    if (std::isfinite(norm)) {
      gradient.mul_(scale);
      s.mean.mul_(kMean).add_(gradient, 1 - kMean);
      s.square.mul_(kSquare).addcmul_(gradient, gradient, 1 - kSquare);
      torch::Tensor change = (s.mean / mean_bias).div_((s.square / square_bias).sqrt_().add_(kTiny));
      if (s.value.dim() > 1) change.add_(s.value, how.decay);
      if (s.factor.defined()) change.mul_(s.factor);
      s.value.sub_(change, how.rate);
    }
    gradient.zero_();
  }
  return norm;
}

}  // namespace ridge::distill
