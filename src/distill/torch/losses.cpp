#include "distill/torch/losses.h"

#include <cmath>

namespace ridge::distill {
namespace {

torch::Tensor mean_of(const torch::Tensor& each, const torch::Tensor& weight) {
  return (each * weight).sum() / weight.sum().clamp_min(1);
}

// log(share·e^a + (1 − share)·e^b)
torch::Tensor log_mix(double share, const torch::Tensor& a, const torch::Tensor& b) {
  if (share <= 0) return b;
  return torch::logaddexp(a + std::log(share), b + std::log1p(-share));
}

// Σ e^a (a − b) of each row.
torch::Tensor kl(const torch::Tensor& a, const torch::Tensor& b) { return (a.exp() * (a - b)).sum(-1); }

}  // namespace

torch::Tensor cross_entropy(const torch::Tensor& logits, const torch::Tensor& targets, const torch::Tensor& weight) {
  return mean_of(-logits.log_softmax(-1).gather(1, targets.unsqueeze(1)).squeeze(1), weight);
}

torch::Tensor divergence(const Losses& losses, const torch::Tensor& logits, const torch::Tensor& teacher,
                         const torch::Tensor& weight) {
  const double t = losses.temperature, skew = losses.skew;
  const auto q = (logits / t).log_softmax(-1), p = (teacher.detach() / t).log_softmax(-1);
  torch::Tensor each;
  switch (losses.divergence) {
    case Divergence::forward:
      each = kl(p, q);
      break;
    case Divergence::reverse:
      each = kl(q, p);
      break;
    case Divergence::skew_forward:
      each = kl(p, log_mix(skew, p, q));
      break;
    case Divergence::skew_reverse:
      each = kl(q, log_mix(skew, q, p));
      break;
  }
  return mean_of(each, weight) * (t * t);
}

torch::Tensor hidden_match(const torch::Tensor& hidden, const torch::Tensor& projection, const torch::Tensor& teacher,
                           const torch::Tensor& weight) {
  const auto target = teacher.detach();
  const auto distance = (torch::matmul(hidden, projection.t()) - target).pow(2).mean(-1);
  return mean_of(distance, weight) / mean_of(target.pow(2).mean(-1), weight);
}

torch::Tensor gate_mean(const std::vector<torch::Tensor>& gates) {
  torch::Tensor sum = gates.front().mean();
  for (size_t i = 1; i < gates.size(); ++i) sum = sum + gates[i].mean();
  return sum / static_cast<double>(gates.size());
}

}  // namespace ridge::distill
