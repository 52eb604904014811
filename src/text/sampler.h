// Choosing the next token from logits: penalties, temperature, top-k, top-p, min-p, and our own documented generator, so
// that a seed gives the same text on every machine.
//
//   Sampler sampler({.temperature = 0.8f, .top_p = 0.95f, .seed = 1}, vocabulary_size);
//   TokenId next = sampler.sample(logits);       // logits may be changed
//   sampler.accept(next);
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "text/tokenizer.h"

namespace ridge {

struct SamplerOptions {
  float temperature = 0.8f;        // 0: greedy (lowest id wins a tie)
  int top_k = 40;                  // 0: off
  float top_p = 0.95f;             // 1: off
  float min_p = 0.05f;             // 0: off
  float repeat_penalty = 1.0f;     // 1: off
  float presence_penalty = 0.0f;
  float frequency_penalty = 0.0f;
  int penalty_window = 64;         // last tokens the penalties look at
  std::vector<std::pair<TokenId, float>> logit_bias;
  uint64_t seed = 0;
};

Result<void> check(const SamplerOptions& options);    // usage error naming the flag

class Sampler {
 public:
  Sampler(SamplerOptions options, size_t vocabulary);
  TokenId sample(std::span<float> logits);
  void accept(TokenId id);                             // also for prompt tokens: the penalties see them
  uint64_t memory_bytes() const;

 private:
  void apply_penalties(std::span<float> logits) const;
  SamplerOptions options_;
  std::vector<TokenId> recent_;                        // ring of penalty_window
  size_t recent_next_ = 0;
  std::vector<std::pair<float, TokenId>> candidates_;  // allocated once: vocabulary entries
  uint64_t state_[4];
};

}  // namespace ridge
