// Which steps of a sampler are computed when Spectrum predicts the others (Han and others, CVPR 2026, arXiv 2603.01823,
// in the form for samplers: a predicted step runs no network at all).
//
//   std::vector<bool> computed = spectrum_steps(28);      // 13 of them
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace ridge::sim {

struct SpectrumRule {
  uint32_t warmup = 4;  // the first steps are computed
  double window = 2;    // then every so many-th,
  double flex = 0.5;    // growing by this with each computed step
  float stop = 0.9f;    // from this share of the steps on all are computed
};

inline std::vector<bool> spectrum_steps(uint32_t steps, const SpectrumRule& rule = {}) {
  std::vector<bool> computed(steps);
  const uint32_t stop = static_cast<uint32_t>(rule.stop * static_cast<float>(steps));
  double window = rule.window;
  uint32_t predicted = 0;  // in a row
  for (uint32_t i = 0; i < steps; ++i) {
    const uint32_t every = std::max<uint32_t>(1, static_cast<uint32_t>(std::floor(window)));
    computed[i] = i < rule.warmup || i >= stop || (predicted + 1) % every == 0;
    predicted = computed[i] ? 0 : predicted + 1;
    if (computed[i] && i >= rule.warmup) window += rule.flex;
  }
  return computed;
}

}  // namespace ridge::sim
