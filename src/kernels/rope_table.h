// Cosines and sines of rotary position embeddings (Su et al., "RoFormer", 2021), with the ways to stretch them to
// longer contexts: a linear factor, factors per pair (llama 3, longrope), and YaRN (Peng et al., 2023).
//
// Angles are computed in double precision with our own functions (math.h), so a table has the same bytes everywhere.
// Not for: the rotation itself (Kernels::rope_norm, rope_neox).
//
//   RopeConfig rope{.rot = 64, .base = 10000.0};
//   float cos_sin[64];
//   rope_table(rope, position, cos_sin);      // once per position, for all layers and heads
//   kernels.rope_neox(head, 64, cos_sin);
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace ridge {

struct RopeConfig {
  size_t rot = 0;                       // dimensions that turn; even
  double base = 10000.0;                // pair i turns by base^(−2i / rot) per position
  double linear_factor = 1.0;           // positions are divided by it
  const float* pair_factors = nullptr;  // [rot / 2] or none; pair i turns 1 / pair_factors[i] as fast
  double magnitude = 1.0;               // multiplies every cosine and sine
  // YaRN: pairs that turn less than beta_slow times within the original context are slowed by the factor, those that
  // turn more than beta_fast times are left alone, and in between the two are blended linearly over the pair index.
  double yarn_factor = 1.0;  // 1: off
  double yarn_original_context = 0;
  double yarn_beta_fast = 32.0, yarn_beta_slow = 1.0;
};

// Radians per position of pair `pair` < rot / 2, all of the above but the magnitude included.
double rope_frequency(const RopeConfig& config, size_t pair);
std::vector<double> rope_frequencies(const RopeConfig& config);  // of all pairs

// cos_sin: [rot]: cosine and sine of pair i at 2i and 2i + 1. Frequencies take ten times as long as the rest: who makes
// many tables keeps them.
void rope_table(std::span<const double> frequencies, double magnitude, size_t position, float* cos_sin);
void rope_table(const RopeConfig& config, size_t position, float* cos_sin);

}  // namespace ridge
