#include "engine/image_noise.h"

#include <cmath>

#include "base/splitmix.h"
#include "kernels/math.h"

namespace ridge {

void fill_noise(uint64_t seed, uint64_t stream, std::span<float> out) {
  constexpr double kTwoPi = 0x1.921fb54442d18p+2;
  uint64_t state = seed;
  state = splitmix64(state) ^ (stream * 0xD1B54A32D192ED03u);
  state = splitmix64(state);
  for (size_t i = 0; i < out.size(); i += 2) {
    const double u1 = static_cast<double>((splitmix64(state) >> 11) + 1) * 0x1p-53;
    const double u2 = static_cast<double>(splitmix64(state) >> 11) * 0x1p-53;
    const double radius = std::sqrt(-2 * d_log(u1)), angle = kTwoPi * u2;
    out[i] = static_cast<float>(radius * d_cos(angle));
    if (i + 1 < out.size()) out[i + 1] = static_cast<float>(radius * d_sin(angle));
  }
}

}  // namespace ridge
