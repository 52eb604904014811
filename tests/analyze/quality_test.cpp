#include "analyze/quality.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace ridge {
namespace {

TEST(Quality, NegativeLogLikelihoodOfAUniformGuess) {
  std::array<float, 8> logits{};
  EXPECT_NEAR(negative_log_likelihood(logits, 3), std::log(8.0), 1e-12);
}

TEST(Quality, LargeLogitsDoNotOverflow) {
  std::array<float, 3> logits{10000.0f, 9999.0f, -10000.0f};
  EXPECT_NEAR(negative_log_likelihood(logits, 1), std::log(1 + std::exp(1.0)), 1e-9);
}

TEST(Quality, DivergenceOfTwoCoins) {
  std::array<float, 2> even{0, 0}, biased{std::log(3.0f), 0};
  double want = 0.5 * std::log(0.5 / 0.75) + 0.5 * std::log(0.5 / 0.25);
  EXPECT_NEAR(kl_divergence(even, biased), want, 1e-7);
  EXPECT_NEAR(kl_divergence(biased, biased), 0, 1e-15);
}

TEST(Quality, AConstantAddedToLogitsChangesNothing) {
  std::array<float, 3> a{1, 2, 3}, b{101, 102, 103};
  EXPECT_NEAR(kl_divergence(a, b), 0, 1e-9);
}

}  // namespace
}  // namespace ridge
