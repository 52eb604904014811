#include "engine/image_schedule.h"

#include <algorithm>

#include "base/check.h"

namespace ridge {

std::vector<float> flow_sigmas(uint32_t steps, float shift) {
  RIDGE_CHECK(steps >= 1 && shift > 0, "at least one step, and a positive shift");
  std::vector<float> sigmas;
  sigmas.reserve(steps + 1);
  // Evenly in float64, as numpy's linspace: start + i · step, with the end itself as the last.
  const double last = 1.0 / steps, step = steps > 1 ? (last - 1.0) / (steps - 1) : 0;
  for (uint32_t i = 0; i < steps; ++i) {
    const double even = i + 1 == steps && steps > 1 ? last : 1.0 + i * step;
    const auto t = static_cast<float>(even);
    const float above = shift * t, below = 1 + (shift - 1) * t;
    sigmas.push_back(above / below);
  }
  sigmas.push_back(0);
  return sigmas;
}

std::span<const float> sigmas_from_strength(std::span<const float> sigmas, float strength) {
  RIDGE_CHECK(sigmas.size() >= 2 && strength > 0 && strength <= 1, "a schedule, and a share of it");
  const size_t steps = sigmas.size() - 1;
  const auto taken = static_cast<size_t>(strength * static_cast<float>(steps));
  return sigmas.last(std::clamp<size_t>(taken, 1, steps) + 1);
}

}  // namespace ridge
