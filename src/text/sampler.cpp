#include "text/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "text/sampler_exp.h"

namespace ridge {
namespace {

constexpr int kMaxPenaltyWindow = 1 << 20;
constexpr float kImpossible = -std::numeric_limits<float>::infinity();

// Better first; a total order, since no logit is NaN here. So the order does not depend on the sorting algorithm.
bool better(const std::pair<float, TokenId>& a, const std::pair<float, TokenId>& b) {
  return a.first != b.first ? a.first > b.first : a.second < b.second;
}

// A logit that can be compared and subtracted.
float usable(float logit) {
  if (std::isnan(logit)) return kImpossible;
  return std::min(logit, std::numeric_limits<float>::max());
}

// e^((logit - largest) / temperature), in (0, 1].
double weight(float logit, float largest, double temperature) {
  return exp_nonpositive((static_cast<double>(logit) - static_cast<double>(largest)) / temperature);
}

// Calls visit(i) for the logits from `begin` on that may be above the bound, which visit returns anew. Few are, so
// whole blocks are compared at once: a vocabulary of 262,144 takes microseconds, not a tenth of a token's time.
template <class Visit>
void for_each_above(std::span<const float> logits, size_t begin, float bound, const Visit& visit) {
  constexpr size_t kBlock = 16;
  size_t i = begin;
  for (; i + kBlock <= logits.size(); i += kBlock) {
    int above = 0;
    for (size_t j = 0; j < kBlock; ++j) above |= logits[i + j] > bound ? 1 : 0;  // false for NaN
    for (size_t j = 0; above != 0 && j < kBlock; ++j) bound = visit(i + j);
  }
  for (; i < logits.size(); ++i) bound = visit(i);
}

Error out_of_range(std::string_view flag, std::string_view range, double value) {
  return usage_error(fmt::format("{} must lie in {}, not {}", flag, range, value));
}

Result<void> check_bias(const SamplerOptions& options, std::optional<size_t> vocabulary) {
  for (const auto& [id, bias] : options.logit_bias) {
    if (id < 0 || (vocabulary && static_cast<size_t>(id) >= *vocabulary)) {
      const std::string range = vocabulary ? fmt::format("[0, {})", *vocabulary) : "[0, size of the vocabulary)";
      return usage_error(fmt::format("--logit-bias needs token ids in {}, not {}", range, id));
    }
    if (std::isnan(bias) || bias == std::numeric_limits<float>::infinity()) {
      return usage_error(fmt::format("--logit-bias of token {} must be a number or -inf, not {}", id, bias));
    }
  }
  return {};
}

}  // namespace

Result<void> check(const SamplerOptions& options, std::optional<size_t> vocabulary) {
  const float p = options.top_p;
  const float m = options.min_p;
  // Written so that NaN fails.
  if (!(options.temperature >= 0.0f && std::isfinite(options.temperature))) {
    return out_of_range("--temp", "[0, infinity)", options.temperature);
  }
  if (options.top_k < 0) return usage_error(fmt::format("--top-k must be 0 (off) or more, not {}", options.top_k));
  if (!(p > 0.0f && p <= 1.0f)) return out_of_range("--top-p", "(0, 1]", p);
  if (!(m >= 0.0f && m <= 1.0f)) return out_of_range("--min-p", "[0, 1]", m);
  if (!(options.repeat_penalty > 0.0f && std::isfinite(options.repeat_penalty))) {
    return out_of_range("--repeat-penalty", "(0, infinity)", options.repeat_penalty);
  }
  if (!std::isfinite(options.presence_penalty)) {
    return usage_error(fmt::format("--presence-penalty must be a number, not {}", options.presence_penalty));
  }
  if (!std::isfinite(options.frequency_penalty)) {
    return usage_error(fmt::format("--frequency-penalty must be a number, not {}", options.frequency_penalty));
  }
  if (options.penalty_window < 0 || options.penalty_window > kMaxPenaltyWindow) {
    return usage_error(
        fmt::format("--penalty-window must lie in [0, {}], not {}", kMaxPenaltyWindow, options.penalty_window));
  }
  return check_bias(options, vocabulary);
}

Sampler::Sampler(SamplerOptions options, size_t vocabulary)
    : options_(std::move(options)),
      vocabulary_(vocabulary),
      recent_(static_cast<size_t>(std::max(options_.penalty_window, 0))),
      window_(recent_.size()),
      candidates_(vocabulary),
      rng_(options_.seed) {
  RIDGE_CHECK(vocabulary > 0, "a sampler needs tokens to choose from");
  RIDGE_CHECK(check(options_, vocabulary).ok(), "sampler options must have passed check()");
}

uint64_t Sampler::memory_bytes() const {
  return sizeof(*this) + (recent_.capacity() + window_.capacity()) * sizeof(TokenId) +
         candidates_.capacity() * sizeof(Candidate) +
         options_.logit_bias.capacity() * sizeof(options_.logit_bias.front());
}

void Sampler::follow(const Sampler& other) {
  RIDGE_CHECK(vocabulary_ == other.vocabulary_ && recent_.size() == other.recent_.size(), "a sampler of the same kind");
  recent_ = other.recent_;
  recent_next_ = other.recent_next_;
  recent_count_ = other.recent_count_;
  rng_ = other.rng_;
}

void Sampler::accept(TokenId id) {
  RIDGE_CHECK(id >= 0 && static_cast<size_t>(id) < vocabulary_, "a token of this vocabulary");
  if (recent_.empty()) return;
  recent_[recent_next_] = id;
  recent_next_ = (recent_next_ + 1) % recent_.size();
  recent_count_ = std::min(recent_count_ + 1, recent_.size());
}

TokenId Sampler::sample(std::span<float> logits) {
  RIDGE_CHECK(logits.size() == vocabulary_, "one logit for each token of the vocabulary");
  apply_bias(logits);
  apply_penalties(logits);
  if (options_.temperature == 0.0f) return greedy(logits);
  const auto k = static_cast<size_t>(options_.top_k);
  if (k != 0 && k < vocabulary_) {
    take_best(logits, k);
  } else {
    take_all(logits);
  }
  keep_top_p();
  keep_min_p();
  return draw();
}

TokenId Sampler::greedy(std::span<const float> logits) {
  size_t best = 0;
  for_each_above(logits, 1, usable(logits[0]), [&](size_t i) {
    if (usable(logits[i]) > usable(logits[best])) best = i;
    return usable(logits[best]);
  });
  return static_cast<TokenId>(best);
}

void Sampler::take_all(std::span<const float> logits) {
  for (size_t i = 0; i < logits.size(); ++i) candidates_[i] = {usable(logits[i]), static_cast<TokenId>(i)};
  kept_ = vocabulary_;
  sorted_ = 0;
}

// The best k in order. A heap of them has the worst in front; later tokens only enter if they are above it, since a tie
// goes to the smaller id.
void Sampler::take_best(std::span<const float> logits, size_t k) {
  const auto begin = candidates_.begin(), end = begin + static_cast<std::ptrdiff_t>(k);
  for (size_t i = 0; i < k; ++i) candidates_[i] = {usable(logits[i]), static_cast<TokenId>(i)};
  std::make_heap(begin, end, better);
  for_each_above(logits, k, begin->first, [&](size_t i) {
    if (usable(logits[i]) > begin->first) {
      std::pop_heap(begin, end, better);
      *(end - 1) = {usable(logits[i]), static_cast<TokenId>(i)};
      std::push_heap(begin, end, better);
    }
    return begin->first;
  });
  std::sort_heap(begin, end, better);
  kept_ = sorted_ = k;
}

void Sampler::apply_bias(std::span<float> logits) const {
  for (const auto& [id, bias] : options_.logit_bias) logits[static_cast<size_t>(id)] += bias;
}

// Once for every different token among the last penalty_window: its logit is divided by the repeat penalty if positive,
// multiplied by it if not, and then lowered by count * frequency + presence.
void Sampler::apply_penalties(std::span<float> logits) {
  const bool off =
      options_.repeat_penalty == 1.0f && options_.presence_penalty == 0.0f && options_.frequency_penalty == 0.0f;
  if (off || recent_count_ == 0) return;
  const auto end = window_.begin() + static_cast<std::ptrdiff_t>(recent_count_);
  std::copy_n(recent_.begin(), recent_count_, window_.begin());
  std::sort(window_.begin(), end);
  for (auto run = window_.begin(); run != end;) {
    const auto next = std::upper_bound(run, end, *run);
    float& logit = logits[static_cast<size_t>(*run)];
    logit = logit <= 0.0f ? logit * options_.repeat_penalty : logit / options_.repeat_penalty;
    logit -= static_cast<float>(next - run) * options_.frequency_penalty + options_.presence_penalty;
    run = next;
  }
}

// Puts the best `count` of those kept in front, in order.
void Sampler::sort_first(size_t count) {
  count = std::min(count, kept_);
  if (count <= sorted_) return;
  const auto at = [&](size_t i) { return candidates_.begin() + static_cast<std::ptrdiff_t>(i); };
  if (count < kept_) std::nth_element(at(sorted_), at(count), at(kept_), better);
  std::sort(at(sorted_), at(count), better);
  sorted_ = count;
}

// The fewest best tokens whose probabilities (softmax of those still kept, at temperature 1) reach top_p.
void Sampler::keep_top_p() {
  if (options_.top_p >= 1.0f) return;
  const float largest = largest_logit();
  if (largest == kImpossible) return;
  // The candidates are all sorted or still in the order of their ids, so this sum is the same with every library.
  double total = 0.0;
  for (size_t i = 0; i < kept_; ++i) total += weight(candidates_[i].first, largest, 1.0);
  constexpr size_t kFirstLook = 64;  // sorting a whole vocabulary would take milliseconds; few tokens are enough mostly
  double sum = 0.0;
  for (size_t i = 0; i < kept_; ++i) {
    if (i >= sorted_) sort_first(std::max(kFirstLook, sorted_ * 4));
    sum += weight(candidates_[i].first, largest, 1.0);
    if (sum >= static_cast<double>(options_.top_p) * total) kept_ = i + 1;
  }
  sorted_ = kept_;
}

// Those at least min_p times as probable as the most probable one.
void Sampler::keep_min_p() {
  if (options_.min_p <= 0.0f) return;
  const float largest = largest_logit();
  if (largest == kImpossible) return;
  const auto end = candidates_.begin() + static_cast<std::ptrdiff_t>(kept_);
  const auto kept = std::remove_if(candidates_.begin(), end, [&](const Candidate& candidate) {
    return weight(candidate.first, largest, 1.0) < static_cast<double>(options_.min_p);
  });
  kept_ = static_cast<size_t>(kept - candidates_.begin());  // the order of the others stays
  sorted_ = std::min(sorted_, kept_);
}

float Sampler::largest_logit() const {
  if (sorted_ > 0) return candidates_.front().first;
  float largest = kImpossible;
  for (size_t i = 0; i < kept_; ++i) largest = std::max(largest, candidates_[i].first);
  return largest;
}

// One random number picks among those kept, by their probabilities at the temperature.
TokenId Sampler::draw() {
  const double uniform = rng_.uniform();
  const float largest = largest_logit();
  if (largest == kImpossible) return 0;
  const double temperature = static_cast<double>(options_.temperature);
  double total = 0.0;
  for (size_t i = 0; i < kept_; ++i) total += weight(candidates_[i].first, largest, temperature);
  const double aim = uniform * total;
  double sum = 0.0;
  TokenId last = 0;
  for (size_t i = 0; i < kept_; ++i) {
    const double w = weight(candidates_[i].first, largest, temperature);
    if (w <= 0.0) continue;
    last = candidates_[i].second;
    sum += w;
    if (sum > aim) return last;
  }
  return last;  // the product above was rounded up to the total
}

}  // namespace ridge
