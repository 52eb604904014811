#include "kernels/rope_table.h"

#include "tests/kernels/kernel_cases.h"

namespace ridge {
namespace {

TEST(RopeTable, PlainAnglesAreThoseOfTheFormula) {
  const RopeConfig rope{.rot = 64, .base = 10000.0};
  std::vector<float> table(rope.rot);
  for (const size_t position : {size_t{0}, size_t{1}, size_t{511}, size_t{4095}, size_t{131071}, size_t{999999}}) {
    rope_table(rope, position, table.data());
    for (size_t i = 0; i < rope.rot / 2; ++i) {
      const long double angle = static_cast<long double>(position) * powl(10000.0L, -2.0L * i / 64);
      // The angle itself is rounded to double: 1e6 · 2^-53 at the far end.
      ASSERT_NEAR(table[2 * i], static_cast<double>(cosl(angle)), 6.1e-8) << position << " " << i;
      ASSERT_NEAR(table[2 * i + 1], static_cast<double>(sinl(angle)), 6.1e-8) << position << " " << i;
    }
  }
}

TEST(RopeTable, FactorsDivideAndMagnitudeMultiplies) {
  const float factors[] = {1, 2, 4, 8};
  const RopeConfig plain{.rot = 8, .base = 500000.0};
  const RopeConfig scaled{.rot = 8, .base = 500000.0, .linear_factor = 8.0, .pair_factors = factors, .magnitude = 1.25};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_DOUBLE_EQ(rope_frequency(scaled, i), rope_frequency(plain, i) / (8.0 * factors[i]));
  }
  std::vector<float> table(8);
  rope_table(scaled, 100, table.data());
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(table[2 * i], 1.25 * std::cos(100 * rope_frequency(scaled, i)), 1e-7);
    EXPECT_NEAR(table[2 * i + 1], 1.25 * std::sin(100 * rope_frequency(scaled, i)), 1e-7);
  }
}

// The ramp computed by hand for deepseek2: 64 rope dimensions, base 10 000, context 4096, factor 40.
// dim(32) = 64 ln(4096 / 64π) / (2 ln 10000) = 10.47, so lo = 10; dim(1) = 22.51, so hi = 23.
TEST(RopeTable, YarnBlendsBetweenTheTwoCorners) {
  const RopeConfig plain{.rot = 64, .base = 10000.0};
  RopeConfig yarn = plain;
  yarn.yarn_factor = 40;
  yarn.yarn_original_context = 4096;
  for (size_t i = 0; i < 32; ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - 10) / 13.0, 0.0, 1.0);
    const double want = rope_frequency(plain, i) * ((1 - ramp) + ramp / 40);
    ASSERT_NEAR(rope_frequency(yarn, i) / want, 1, 1e-14) << i;
  }
}

TEST(RopeTable, YarnClampsItsCorners) {
  // A context so short that even the fastest pair turns less than once: hi falls on lo and every pair is slowed, except
  // the one at the corner.
  RopeConfig yarn{.rot = 16, .base = 10000.0, .yarn_factor = 4, .yarn_original_context = 4};
  const RopeConfig plain{.rot = 16, .base = 10000.0};
  EXPECT_DOUBLE_EQ(rope_frequency(yarn, 0), rope_frequency(plain, 0));
  for (size_t i = 1; i < 8; ++i) EXPECT_NEAR(rope_frequency(yarn, i) * 4 / rope_frequency(plain, i), 1, 1e-14);
}

}  // namespace
}  // namespace ridge
