// Choosing the next token from logits: penalties, temperature, top-k, top-p, min-p, and our own documented generator,
// so that a seed gives the same text on every machine.
//
// Not for: the logits themselves (model/). The order of the steps and their formulas: docs/sampling.md.
//
//   Sampler sampler({.temperature = 0.8f, .top_p = 0.95f, .seed = 1}, vocabulary_size);
//   TokenId next = sampler.sample(logits);       // logits may be changed
//   sampler.accept(next);
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "text/rng.h"
#include "text/tokenizer.h"

namespace ridge {

struct SamplerOptions {
  float temperature = 0.8f;     // 0: greedy (lowest id wins a tie)
  int top_k = 40;               // 0: off
  float top_p = 0.95f;          // 1: off
  float min_p = 0.05f;          // 0: off
  float repeat_penalty = 1.0f;  // 1: off
  float presence_penalty = 0.0f;
  float frequency_penalty = 0.0f;
  int penalty_window = 64;                                 // last tokens the penalties look at; 0: none
  std::vector<std::pair<TokenId, float>> logit_bias = {};  // added to the logit; -infinity forbids the token
  uint64_t seed = 0;
};

// Usage error naming the flag. With `vocabulary`, ids of logit_bias must lie below it.
Result<void> check(const SamplerOptions& options, std::optional<size_t> vocabulary = std::nullopt);

// Not thread-safe: one sampler per conversation. Allocates only in its constructor.
class Sampler {
 public:
  // Options that check() refuses, or ids outside the vocabulary, are programmer errors.
  Sampler(SamplerOptions options, size_t vocabulary);
  // `logits`: [vocabulary]; bias and penalties are applied in place. NaN counts as -infinity. If no token is possible
  // (all logits are -infinity), token 0.
  TokenId sample(std::span<float> logits);
  void accept(TokenId id);  // also for prompt tokens: the penalties see them
  // From now on chooses as `other` would, of the same options and vocabulary: its random numbers and recent tokens.
  void follow(const Sampler& other);
  uint64_t memory_bytes() const;

 private:
  using Candidate = std::pair<float, TokenId>;
  static TokenId greedy(std::span<const float> logits);
  void take_all(std::span<const float> logits);
  void take_best(std::span<const float> logits, size_t k);
  void apply_bias(std::span<float> logits) const;
  void apply_penalties(std::span<float> logits);
  void sort_first(size_t count);
  void keep_top_p();
  void keep_min_p();
  float largest_logit() const;  // of those kept
  TokenId draw();

  SamplerOptions options_;
  size_t vocabulary_;
  std::vector<TokenId> recent_;  // ring of penalty_window
  size_t recent_next_ = 0;
  size_t recent_count_ = 0;
  std::vector<TokenId> window_;        // recent_ sorted, for counting
  std::vector<Candidate> candidates_;  // logit, id; allocated once: vocabulary entries
  size_t kept_ = 0;                    // candidates still in the race: the first of candidates_
  size_t sorted_ = 0;  // so many of these are in order, best first. Between steps: all, or none (then by id)
  Rng rng_;
};

}  // namespace ridge
