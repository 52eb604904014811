#include "analyze/quality.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/units.h"

namespace ridge {
namespace {

double log_sum_exp(std::span<const float> x) {
  double top = *std::max_element(x.begin(), x.end()), sum = 0;
  for (float v : x) sum += std::exp(static_cast<double>(v) - top);
  return top + std::log(sum);
}

// Mean and the standard error of the mean.
class Mean {
 public:
  void add(double v) {
    ++n_;
    sum_ += v;
    squares_ += v * v;
  }
  uint64_t count() const { return n_; }
  double mean() const { return n_ > 0 ? sum_ / static_cast<double>(n_) : 0; }
  double standard_error() const {
    if (n_ < 2) return 0;
    double n = static_cast<double>(n_), variance = std::max(0.0, (squares_ - sum_ * sum_ / n) / (n - 1));
    return std::sqrt(variance / n);
  }

 private:
  uint64_t n_ = 0;
  double sum_ = 0, squares_ = 0;
};

Result<uint64_t> window_count(const Engine& engine, std::span<const TokenId> ids, const WindowOptions& options) {
  uint64_t windows = std::min<uint64_t>(ids.size() / options.window, options.most_windows);
  if (windows == 0) {
    return bad_input(fmt::format("the text has {}, fewer than one window of {}: give more text or a smaller --window",
                                 counted(ids.size(), "token"), options.window));
  }
  if (options.window > engine.context()) {
    return usage_error(fmt::format("--window {} is longer than the context of {}", options.window, engine.context()));
  }
  return windows;
}

// The tokens of window `w`, BOS in front where the model wants one.
std::vector<TokenId> window_tokens(const Engine& engine, std::span<const TokenId> ids, uint64_t w, uint32_t length) {
  auto part = ids.subspan(w * length, length);
  std::vector<TokenId> out(part.begin(), part.end());
  const Tokenizer* t = engine.tokenizer();
  if (t != nullptr && t->adds_bos() && t->bos()) out[0] = *t->bos();
  return out;
}

}  // namespace

Result<void> check_interrupt(const WindowOptions& options) {
  if (options.interrupted == nullptr || !options.interrupted->load()) return {};
  return io_error("stopped by Ctrl-C");
}

double negative_log_likelihood(std::span<const float> logits, TokenId target) {
  return log_sum_exp(logits) - static_cast<double>(logits[static_cast<size_t>(target)]);
}

double kl_divergence(std::span<const float> a, std::span<const float> b) {
  double log_a = log_sum_exp(a), log_b = log_sum_exp(b), sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    double la = static_cast<double>(a[i]) - log_a;
    sum += std::exp(la) * (la - (static_cast<double>(b[i]) - log_b));
  }
  return sum;
}

Result<Likelihood> likelihood(Engine& engine, std::span<const TokenId> ids, const WindowOptions& options,
                              const std::function<void(uint64_t tokens, double nll)>& progress) {
  uint64_t windows = RIDGE_TRY(window_count(engine, ids, options));
  Mean mean;
  for (uint64_t w = 0; w < windows; ++w) {
    std::vector<TokenId> tokens = window_tokens(engine, ids, w, options.window);
    engine.rewind(0);
    size_t position = 0;
    RIDGE_TRY(engine.evaluate_all(tokens, [&](std::span<const float> logits) -> Result<void> {
      RIDGE_TRY(check_interrupt(options));
      size_t target = ++position;
      if (target >= options.window / 2 && target < tokens.size())
        mean.add(negative_log_likelihood(logits, tokens[target]));
      return {};
    }));
    if (progress) progress(tokens.size(), mean.mean());
  }
  return Likelihood{mean.mean(), mean.standard_error(), mean.count(), windows};
}

Result<Divergence> divergence(Engine& reference, Engine& other, std::span<const TokenId> ids,
                              const WindowOptions& options,
                              const std::function<void(uint64_t tokens, double kl)>& progress) {
  uint64_t windows = RIDGE_TRY(window_count(reference, ids, options));
  // Steps of this many tokens keep both engines' logits in memory at once without much room.
  constexpr size_t kStep = 16;
  Mean mean, reference_nll, other_nll;
  uint64_t same = 0;
  for (uint64_t w = 0; w < windows; ++w) {
    std::vector<TokenId> tokens = window_tokens(reference, ids, w, options.window);
    reference.rewind(0);
    other.rewind(0);
    for (size_t at = 0; at < tokens.size(); at += kStep) {
      RIDGE_TRY(check_interrupt(options));
      auto step = std::span(tokens).subspan(at, std::min(kStep, tokens.size() - at));
      std::vector<std::vector<float>> expected;
      RIDGE_TRY(reference.evaluate_all(step, [&](std::span<const float> row) -> Result<void> {
        expected.emplace_back(row.begin(), row.end());
        return {};
      }));
      size_t r = 0;
      RIDGE_TRY(other.evaluate_all(step, [&](std::span<const float> row) -> Result<void> {
        const size_t target = at + r + 1;
        const std::vector<float>& want = expected[r++];
        mean.add(kl_divergence(want, row));
        if (target >= options.window / 2 && target < tokens.size()) {
          reference_nll.add(negative_log_likelihood(want, tokens[target]));
          other_nll.add(negative_log_likelihood(row, tokens[target]));
        }
        same += std::max_element(want.begin(), want.end()) - want.begin() ==
                std::max_element(row.begin(), row.end()) - row.begin();
        return {};
      }));
      if (progress) progress(step.size(), mean.mean());
    }
  }
  double n = static_cast<double>(std::max<uint64_t>(1, mean.count()));
  return Divergence{mean.mean(),      mean.standard_error(), static_cast<double>(same) / n,
                    mean.count(),     reference_nll.mean(),  other_nll.mean(),
                    other_nll.count()};
}

}  // namespace ridge
