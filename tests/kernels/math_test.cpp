#include "kernels/math.h"

#include "tests/kernels/kernel_cases.h"

namespace ridge {
namespace {

using test::Random;
using test::ulps;

TEST(Math, ExpIsWithinOneUlp) {
  double worst = 0;
  for (float x = -87.0f; x < 89.5f; x += 0x1.7p-11f) {
    const double error = ulps(exp_f32(x), std::exp(static_cast<double>(x)));
    worst = std::max(worst, error);
    ASSERT_LE(error, 1.0) << "x = " << x;
  }
  EXPECT_GT(worst, 0.3);  // the sweep does meet hard cases
}

TEST(Math, ExpAtTheEnds) {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(exp_f32(0.0f), 1.0f);
  EXPECT_EQ(exp_f32(-0.0f), 1.0f);
  EXPECT_EQ(exp_f32(-inf), 0.0f);
  EXPECT_FALSE(std::signbit(exp_f32(-inf)));
  EXPECT_EQ(exp_f32(-1e30f), 0.0f);
  EXPECT_EQ(exp_f32(inf), inf);
  EXPECT_EQ(exp_f32(89.0f), inf);
  EXPECT_TRUE(std::isfinite(exp_f32(88.72f)));
  EXPECT_GE(exp_f32(-87.0f), std::numeric_limits<float>::min());
  EXPECT_EQ(exp_f32(-87.001f), 0.0f);  // no denormal numbers
  EXPECT_EQ(exp_f32(-103.0f), 0.0f);
  EXPECT_TRUE(std::isnan(exp_f32(std::nanf(""))));
}

TEST(Math, TanhIsWithinTwoUlps) {
  for (float x = -12.0f; x < 12.0f; x += 0x1.3p-13f)
    ASSERT_LE(ulps(tanh_f32(x), std::tanh(static_cast<double>(x))), 2.0) << x;
  for (float x = 1.0f; x > 1e-44f; x *= 0.7f) ASSERT_LE(ulps(tanh_f32(x), std::tanh(static_cast<double>(x))), 2.0) << x;
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(tanh_f32(inf), 1.0f);
  EXPECT_EQ(tanh_f32(-inf), -1.0f);
  EXPECT_TRUE(std::signbit(tanh_f32(-0.0f)));
  EXPECT_TRUE(std::isnan(tanh_f32(std::nanf(""))));
}

TEST(Math, SiluIsCloseAndKeepsTheTails) {
  for (float x = -87.0f; x < 90.0f; x += 0x1.3p-9f) {
    const double exact = x / (1.0 + std::exp(-static_cast<double>(x)));
    ASSERT_LE(ulps(silu_f32(x), exact), 4.0) << x;
  }
  EXPECT_EQ(silu_f32(-200.0f), 0.0f);
  EXPECT_EQ(silu_f32(1e30f), 1e30f);
}

TEST(Math, GeluIsCloseAndKeepsTheTails) {
  for (float x = -9.0f; x < 20.0f; x += 0x1.3p-11f) {
    const double v = static_cast<double>(x), exact = 0.5 * v * std::erfc(-v * M_SQRT1_2);
    ASSERT_LE(ulps(gelu_f32(x), exact), 8.0 + (x < 0 ? 2.0 * v * v : 0)) << x;
    ASSERT_NEAR(gelu_f32(x), exact, 3e-7 * std::fmax(1.0f, std::fabs(x))) << x;
  }
  EXPECT_EQ(gelu_f32(0.0f), 0.0f);
  EXPECT_EQ(gelu_f32(-1e20f), 0.0f);
  EXPECT_EQ(gelu_f32(1e20f), 1e20f);
  EXPECT_TRUE(std::isnan(gelu_f32(std::nanf(""))));
}

TEST(Math, GeluTanhIsCloseAndKeepsTheTails) {
  for (float x = -5.0f; x < 20.0f; x += 0x1.3p-11f) {
    const double u = std::sqrt(2 / M_PI) * (x + 0.044715 * static_cast<double>(x) * x * x);
    const double exact = x / (1.0 + std::exp(-2.0 * u));
    // e^v magnifies the rounding of its argument v by |v|.
    ASSERT_LE(ulps(gelu_tanh_f32(x), exact), 4.0 + 2.0 * std::fmax(0, -2.0 * u)) << x;
    ASSERT_NEAR(gelu_tanh_f32(x), 0.5 * x * (1 + std::tanh(u)), 2e-7 * std::fmax(1.0f, std::fabs(x))) << x;
  }
  EXPECT_EQ(gelu_tanh_f32(-1e20f), 0.0f);
  EXPECT_EQ(gelu_tanh_f32(1e20f), 1e20f);
  EXPECT_EQ(gelu_tanh_f32(std::numeric_limits<float>::infinity()), std::numeric_limits<float>::infinity());
}

TEST(Math, DoubleSineAndCosine) {
  Random random(1);
  for (int i = 0; i < 200000; ++i) {
    const double range = i % 3 == 0 ? 4.0 : i % 3 == 1 ? 1e4 : 1e6;
    const double x = (static_cast<double>(random.bits() >> 11) * 0x1p-52 - 1) * range;
    ASSERT_NEAR(d_sin(x), static_cast<double>(sinl(x)), 2.3e-16) << x;
    ASSERT_NEAR(d_cos(x), static_cast<double>(cosl(x)), 2.3e-16) << x;
  }
  // Where the reduction cancels: the double nearest to 355 π/2 · k.
  for (int k = 1; k < 1000; ++k) {
    const double x = k * M_PI_2;
    ASSERT_NEAR(d_sin(x), static_cast<double>(sinl(x)), 2.3e-16);
    ASSERT_NEAR(d_cos(x), static_cast<double>(cosl(x)), 2.3e-16);
  }
  EXPECT_EQ(d_sin(0), 0);
  EXPECT_EQ(d_cos(0), 1);
}

TEST(Math, DoubleExpLogPow) {
  Random random(2);
  for (int i = 0; i < 100000; ++i) {
    const double u = static_cast<double>(random.bits() >> 11) * 0x1p-53;
    const double x = (u - 0.5) * 1400;
    ASSERT_NEAR(d_exp(x) / static_cast<double>(expl(x)), 1, x < -700 ? 1e-10 : 4e-16) << x;
    const double y = static_cast<double>(expl(x / 2));
    ASSERT_NEAR(d_log(y) / static_cast<double>(logl(y)), 1, 4e-16) << y;
    const double near = 1.0001 + 0.1 * u;
    ASSERT_NEAR(d_log(near) / static_cast<double>(logl(near)), 1, 4e-16) << near;
    const double base = 100 + 1e6 * u;
    ASSERT_NEAR(d_pow(base, -u) / static_cast<double>(powl(base, -u)), 1, 4e-16) << base;
  }
  EXPECT_EQ(d_exp(0), 1);
  EXPECT_EQ(d_log(1), 0);
  EXPECT_EQ(d_pow(10000, 0), 1);
  EXPECT_EQ(d_exp(800), HUGE_VAL);
  EXPECT_EQ(d_exp(-800), 0);
}

}  // namespace
}  // namespace ridge
