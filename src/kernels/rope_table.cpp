#include "kernels/rope_table.h"

#include <algorithm>

#include "kernels/math.h"

namespace ridge {
namespace {

// The pair index (a real number) that turns `turns` times within the original context:
// rot · ln(context / (2π · turns)) / (2 · ln base).
double pair_with_turns(const RopeConfig& config, double turns) {
  constexpr double kTwoPi = 6.283185307179586;
  return static_cast<double>(config.rot) * d_log(config.yarn_original_context / (kTwoPi * turns)) /
         (2.0 * d_log(config.base));
}

// 1: the pair keeps its frequency; 0: it is divided by the factor.
double yarn_kept_share(const RopeConfig& config, size_t pair) {
  const double fast = pair_with_turns(config, config.yarn_beta_fast);
  const double slow = pair_with_turns(config, config.yarn_beta_slow);
  const double low = static_cast<double>(static_cast<long>(std::max(fast, 0.0)));  // max(0, ⌊fast⌋)
  double high = static_cast<double>(static_cast<long>(slow));
  if (high < slow) high += 1;  // ⌈slow⌉
  high = std::min(high, static_cast<double>(config.rot) - 1);
  const double ramp = (static_cast<double>(pair) - low) / std::max(0.001, high - low);
  return 1.0 - std::clamp(ramp, 0.0, 1.0);
}

}  // namespace

double rope_frequency(const RopeConfig& config, size_t pair) {
  double theta = d_pow(config.base, -2.0 * static_cast<double>(pair) / static_cast<double>(config.rot));
  if (config.pair_factors != nullptr) theta /= static_cast<double>(config.pair_factors[pair]);
  theta /= config.linear_factor;
  if (config.yarn_factor != 1.0) {
    const double kept = yarn_kept_share(config, pair);
    theta *= kept + (1.0 - kept) / config.yarn_factor;
  }
  return theta;
}

std::vector<double> rope_frequencies(const RopeConfig& config) {
  std::vector<double> out(config.rot / 2);
  for (size_t pair = 0; pair < out.size(); ++pair) out[pair] = rope_frequency(config, pair);
  return out;
}

void rope_table(std::span<const double> frequencies, double magnitude, size_t position, float* cos_sin) {
  for (size_t pair = 0; pair < frequencies.size(); ++pair) {
    const double angle = static_cast<double>(position) * frequencies[pair];
    cos_sin[2 * pair] = static_cast<float>(d_cos(angle) * magnitude);
    cos_sin[2 * pair + 1] = static_cast<float>(d_sin(angle) * magnitude);
  }
}

void rope_table(const RopeConfig& config, size_t position, float* cos_sin) {
  rope_table(rope_frequencies(config), config.magnitude, position, cos_sin);
}

}  // namespace ridge
