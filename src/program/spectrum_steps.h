// Which steps of a sampler are computed when Spectrum predicts the others (Han and others, CVPR 2026, arXiv
// 2603.01823). Plain rules: the simulator counts with them, the engine asks step by step (engine/spectrum.h).
//
//   std::vector<bool> computed = spectrum_steps(28);      // 13 of them: XXXX.X.X..X..X...X...X...XXX
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace ridge {

struct SpectrumRule {
  uint32_t warmup = 4;         // the first steps are computed
  double window = 2;           // then every so many-th,
  double flex = 0.5;           // growing by this with each computed step
  float stop = 0.9f;           // from this share of the steps on all are computed; 1: never
  uint32_t tail = 0;           // the last so many steps are computed
  bool rounds_window = false;  // to three decimals after each growth, as the authors' program does
};

// The rule, step by step. What is computed although the rule does not ask for it counts as well.
class SpectrumSchedule {
 public:
  SpectrumSchedule(const SpectrumRule& rule, uint32_t steps)
      : rule_(rule),
        steps_(steps),
        stop_(static_cast<uint32_t>(rule.stop * static_cast<float>(steps))),
        window_(rule.window) {}

  // Whether the next step, `step`, is to be computed.
  bool wants(uint32_t step) const {
    const uint32_t every = std::max<uint32_t>(1, static_cast<uint32_t>(std::floor(window_)));
    return step < rule_.warmup || step >= stop_ || step + rule_.tail >= steps_ || (predicted_ + 1) % every == 0;
  }
  void done(uint32_t step, bool computed) {
    predicted_ = computed ? 0 : predicted_ + 1;
    if (!computed || step < rule_.warmup) return;
    window_ += rule_.flex;
    if (rule_.rounds_window) window_ = std::round(window_ * 1000) / 1000;
  }

 private:
  SpectrumRule rule_;
  uint32_t steps_, stop_;
  double window_;
  uint32_t predicted_ = 0;  // in a row
};

inline std::vector<bool> spectrum_steps(uint32_t steps, const SpectrumRule& rule = {}) {
  std::vector<bool> computed(steps);
  SpectrumSchedule schedule(rule, steps);
  for (uint32_t i = 0; i < steps; ++i) {
    computed[i] = schedule.wants(i);
    schedule.done(i, computed[i]);
  }
  return computed;
}

}  // namespace ridge
