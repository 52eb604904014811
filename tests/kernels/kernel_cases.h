// What the kernel tests share: walking the one list, numbers without luck, and comparing bytes.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/splitmix.h"
#include "kernels/choose.h"
#include "machine/cpu.h"

namespace ridge::test {

// A small generator with a fixed sequence (splitmix64).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t bits() { return splitmix64(state_); }
  float uniform(float low, float high) { return low + (high - low) * static_cast<float>(bits() >> 40) * 0x1p-24f; }
  std::vector<float> vector(size_t n, float low = -4, float high = 4) {
    std::vector<float> v(n);
    for (float& x : v) x = uniform(low, high);
    return v;
  }

 private:
  uint64_t state_;
};

// Kernels outside the arithmetic contract are left out: fast_test.cpp has them.
inline bool runs_here(const Kernel& kernel) { return !kernel.fast && cpu_info().features.has_all({kernel.needs}); }

// The scalar kernel of an operation that does not depend on a weight type.
template <class Function>
Function reference(Op op) {
  for (const Kernel& kernel : kernel_list()) {
    if (kernel.op == op && kernel.isa == Isa::scalar) return reinterpret_cast<Function>(kernel.function);
  }
  RIDGE_CHECK(false, "every operation has a scalar kernel");
  return nullptr;
}

// body(kernel function, its name) for every kernel of `op` that this CPU can run, the scalar one included.
template <class Function, class Body>
void for_each_kernel(Op op, Body body) {
  for (const Kernel& kernel : kernel_list()) {
    if (kernel.op == op && runs_here(kernel)) {
      SCOPED_TRACE(kernel.name);
      body(reinterpret_cast<Function>(kernel.function));
    }
  }
}

// Equal bytes, except that any NaN equals any other: the contract leaves the payload of a NaN open.
inline ::testing::AssertionResult same_bytes(const std::vector<float>& got, const std::vector<float>& want) {
  if (got.size() != want.size()) return ::testing::AssertionFailure() << got.size() << " values, not " << want.size();
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(got[i]) && std::isnan(want[i])) continue;
    if (std::bit_cast<uint32_t>(got[i]) != std::bit_cast<uint32_t>(want[i])) {
      return ::testing::AssertionFailure()
             << "value " << i << " of " << got.size() << ": " << std::hexfloat << got[i] << ", not " << want[i];
    }
  }
  return ::testing::AssertionSuccess();
}

inline bool same_bytes(float got, float want) {
  return (std::isnan(got) && std::isnan(want)) || std::bit_cast<uint32_t>(got) == std::bit_cast<uint32_t>(want);
}

// Distance in units of the last place of the float nearest to `want`.
inline double ulps(float got, double want) {
  if (std::isnan(got) || std::isnan(want)) return std::isnan(got) && std::isnan(want) ? 0 : HUGE_VAL;
  const float nearest = static_cast<float>(want);
  if (got == nearest)
    return std::isinf(nearest) ? 0 : std::fabs(got - want) / std::fmax(std::fabs(want) * 0x1p-24, 0x1p-149);
  if (std::isinf(nearest) || std::isinf(got)) return HUGE_VAL;
  int exponent = 0;
  std::frexp(want, &exponent);
  return std::fabs(static_cast<double>(got) - want) / std::ldexp(1.0, std::max(exponent - 24, -149));
}

// Every length where vectors of 8, 16 and 32 have something left over, and some from real models.
inline std::vector<size_t> lengths() {
  std::vector<size_t> n;
  for (size_t i = 1; i <= 70; ++i) n.push_back(i);
  for (size_t i : {127, 256, 576, 1000, 1536}) n.push_back(i);
  return n;
}

// Values where kernels go wrong: zeros, denormals, extremes, infinities, NaN.
inline std::vector<float> special_values() {
  using Limits = std::numeric_limits<float>;
  return {0.0f,
          -0.0f,
          Limits::denorm_min(),
          -Limits::denorm_min(),
          1e-40f,
          Limits::min(),
          -Limits::min(),
          1.0f,
          -1.0f,
          0.625f,
          -0.625f,
          87.3f,
          88.7f,
          88.8f,
          -87.4f,
          -103.9f,
          -104.1f,
          1e4f,
          -1e4f,
          1e20f,
          -1e20f,
          Limits::max(),
          Limits::lowest(),
          Limits::infinity(),
          -Limits::infinity(),
          Limits::quiet_NaN()};
}

// Uniform numbers with the special ones strewn among them, at places that differ from one seed to the next.
inline std::vector<float> with_specials(size_t n, uint64_t seed) {
  Random random(seed);
  std::vector<float> v = random.vector(n);
  const std::vector<float> specials = special_values();
  for (size_t i = 0; i < n; ++i) {
    if (random.bits() % 3 == 0) v[i] = specials[random.bits() % specials.size()];
  }
  return v;
}

}  // namespace ridge::test
