#include "distill/torch/student.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "text/rng.h"

namespace ridge::distill {
namespace {

torch::Tensor rms_norm(const torch::Tensor& x, const torch::Tensor& weight) {
  return x * torch::rsqrt(x.pow(2).mean(-1, true) + kNormEpsilon) * weight;
}

torch::Tensor times(const torch::Tensor& x, const torch::Tensor& weight) { return torch::matmul(x, weight.t()); }

}  // namespace

Student::Student(const StudentShape& shape, torch::ScalarType type) : shape_(shape), type_(type) {
  const int64_t d = shape.dim, kv = int64_t{shape.kv_heads} * shape.head_dim(), ffn = shape.ffn;
  embedding_ = add("token_embd.weight", -1, shape.vocabulary, d);
  for (int i = 0; i < static_cast<int>(shape.layers); ++i) {
    const auto name = [&](const char* rest) { return fmt::format("blk.{}.{}.weight", i, rest); };
    Layer w;
    w.attn_norm = add(name("attn_norm"), i, 0, d);
    w.q = add(name("attn_q"), i, d, d);
    w.k = add(name("attn_k"), i, kv, d);
    w.v = add(name("attn_v"), i, kv, d);
    w.out = add(name("attn_output"), i, d, d);
    w.ffn_norm = add(name("ffn_norm"), i, 0, d);
    if (shape.ffn_kind != FfnKind::relu2) w.gate = add(name("ffn_gate"), i, ffn, d);
    w.up = add(name("ffn_up"), i, ffn, d);
    w.down = add(name("ffn_down"), i, d, ffn);
    layers_.push_back(std::move(w));
  }
  output_norm_ = add("output_norm.weight", -1, 0, d);
  output_ = shape.tied ? embedding_ : add("output.weight", -1, shape.vocabulary, d);

  const int64_t half = shape.head_dim() / 2, context = shape.context;
  const auto positions = torch::arange(context, torch::kFloat64).unsqueeze(1);
  const auto rates = torch::pow(kRopeBase, torch::arange(half, torch::kFloat64) * (-1.0 / static_cast<double>(half)));
  const auto angles = positions * rates;
  cos_ = angles.cos().to(type);
  sin_ = angles.sin().to(type);
  mask_ = torch::full({context, context}, -std::numeric_limits<double>::infinity(), torch::kFloat64).triu(1).to(type);
}

torch::Tensor Student::add(const std::string& name, int layer, int64_t rows, int64_t cols) {
  const auto shape = rows == 0 ? std::vector<int64_t>{cols} : std::vector<int64_t>{rows, cols};
  auto value = torch::ones(shape, torch::TensorOptions().dtype(type_)).set_requires_grad(true);
  parameters_.push_back({name, layer, value});
  return value;
}

void Student::randomise(uint64_t seed) {
  torch::NoGradGuard off;
  Rng rng(seed);
  for (Parameter& p : parameters_) {
    if (p.value.dim() == 1) {
      p.value.fill_(1);
      continue;
    }
    // Variance 1 / columns; what is added to x less, so that many layers do not drown the embedding (GPT-2).
    double deviation = 1 / std::sqrt(static_cast<double>(p.value.size(1)));
    if (p.layer < 0) deviation /= 2;
    if (p.name.ends_with("attn_output.weight") || p.name.ends_with("ffn_down.weight")) {
      deviation /= std::sqrt(2.0 * shape_.runs());
    }
    auto values = torch::empty(p.value.sizes(), torch::kFloat64);
    double* out = values.data_ptr<double>();
    for (int64_t i = 0; i < values.numel(); ++i) out[i] = (2 * rng.uniform() - 1) * std::sqrt(3.0) * deviation;
    p.value.copy_(values);
  }
}

torch::Tensor Student::rotate(const torch::Tensor& x) const {  // [batch, heads, window, head_dim]; pairs are neighbours
  const int64_t window = x.size(2);
  const auto cos = cos_.narrow(0, 0, window), sin = sin_.narrow(0, 0, window);
  const auto pairs = x.reshape({x.size(0), x.size(1), window, -1, 2});
  const auto a = pairs.select(-1, 0), b = pairs.select(-1, 1);
  return torch::stack({a * cos - b * sin, a * sin + b * cos}, -1).flatten(-2);
}

torch::Tensor Student::attention(const Layer& w, const torch::Tensor& x) const {
  const int64_t batch = x.size(0), window = x.size(1), heads = shape_.heads, kv = shape_.kv_heads;
  const auto split = [&](const torch::Tensor& t, int64_t n) {
    return t.reshape({batch, window, n, int64_t{shape_.head_dim()}}).transpose(1, 2);
  };
  const auto q = rotate(split(times(x, w.q), heads));
  auto k = rotate(split(times(x, w.k), kv));
  auto v = split(times(x, w.v), kv);
  if (kv != heads) {
    k = k.repeat_interleave(heads / kv, 1);
    v = v.repeat_interleave(heads / kv, 1);
  }
  const auto mask = mask_.narrow(0, 0, window).narrow(1, 0, window);
  const auto scores = torch::matmul(q, k.transpose(2, 3)) / std::sqrt(static_cast<double>(shape_.head_dim())) + mask;
  const auto mixed = torch::matmul(scores.softmax(-1), v).transpose(1, 2).reshape({batch, window, -1});
  return times(mixed, w.out);
}

torch::Tensor Student::feed_forward(const Layer& w, const torch::Tensor& x, std::vector<torch::Tensor>* gates) const {
  const auto up = times(x, w.up);
  if (shape_.ffn_kind == FfnKind::relu2) {
    const auto on = up.relu();
    if (gates) gates->push_back(on);
    return times(on * on, w.down);
  }
  const auto in = times(x, w.gate);
  const auto gate = shape_.ffn_kind == FfnKind::reglu ? in.relu() : torch::silu(in);
  if (gates) gates->push_back(gate);
  return times(gate * up, w.down);
}

torch::Tensor Student::head(const torch::Tensor& x) const { return times(rms_norm(x, output_norm_), output_); }

Student::Output Student::forward(const torch::Tensor& ids, const ForwardNeeds& needs) const {
  Output out;
  auto x = torch::embedding(embedding_, ids);
  for (uint32_t run = 0; run < shape_.runs(); ++run) {
    const Layer& w = layers_[shape_.shared ? run / 2 : run];
    x = x + attention(w, rms_norm(x, w.attn_norm));
    x = x + feed_forward(w, rms_norm(x, w.ffn_norm), needs.gates ? &out.gates : nullptr);
    if (needs.hidden) out.hidden.push_back(x);
    if (needs.exit && run + 1 == shape_.exit_layer) out.exit_logits = head(x);
  }
  out.logits = head(x);
  return out;
}

std::vector<NamedTensor> Student::named() const {
  std::vector<NamedTensor> out;
  for (const Parameter& p : parameters_) {
    const bool vector = p.value.dim() == 1;
    const auto cols = static_cast<uint64_t>(vector ? p.value.size(0) : p.value.size(1));
    const auto rows = vector ? 0 : static_cast<uint64_t>(p.value.size(0));
    out.push_back({p.name, rows, cols, {p.value.data_ptr<float>(), static_cast<size_t>(p.value.numel())}});
  }
  return out;
}

}  // namespace ridge::distill
