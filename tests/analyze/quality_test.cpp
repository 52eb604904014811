#include "analyze/quality.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <vector>

#include "analyze/importance_map.h"

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

TEST(Quality, AnInterruptComesBeforeTheNextPass) {
  const EngineOptions options{
      .path = RIDGE_TEST_DATA "/models/arcee.gguf", .context = 32, .threads = 1, .need_tokenizer = false};
  auto engine = Engine::open(options), other = Engine::open(options);
  ASSERT_TRUE(engine.ok() && other.ok());
  const std::vector<TokenId> ids(64, 1);
  std::atomic<bool> stop{true};
  const WindowOptions windows{.window = 32, .interrupted = &stop};
  ActivationStats stats(0);
  const auto scored = likelihood(*engine.value(), ids, windows);
  ASSERT_FALSE(scored.ok());
  EXPECT_EQ(scored.error().code, ErrorCode::io);
  EXPECT_LE(engine.value()->position(), 1u);
  EXPECT_FALSE(divergence(*engine.value(), *other.value(), ids, windows).ok());
  EXPECT_FALSE(read_task(*engine.value(), stats, "text", ids, windows).ok());
  EXPECT_EQ(engine.value()->position(), 0u);
  EXPECT_EQ(other.value()->position(), 0u);
  stop = false;
  EXPECT_TRUE(divergence(*engine.value(), *other.value(), ids, windows).ok());
}

}  // namespace
}  // namespace ridge
