#include "text/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "text/sampler_exp.h"

namespace ridge {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Nothing but a draw from the softmax.
SamplerOptions plain() { return {.temperature = 1.0f, .top_k = 0, .top_p = 1.0f, .min_p = 0.0f, .seed = 7}; }

SamplerOptions greedy() {
  SamplerOptions options = plain();
  options.temperature = 0.0f;
  return options;
}

TokenId one(const SamplerOptions& options, std::vector<float> logits, const std::vector<TokenId>& accepted = {}) {
  Sampler sampler(options, logits.size());
  for (const TokenId id : accepted) sampler.accept(id);
  return sampler.sample(logits);
}

std::vector<size_t> draws(const SamplerOptions& options, const std::vector<float>& logits, int count) {
  Sampler sampler(options, logits.size());
  std::vector<size_t> counts(logits.size(), 0);
  for (int i = 0; i < count; ++i) {
    std::vector<float> copy = logits;
    ++counts[static_cast<size_t>(sampler.sample(copy))];
  }
  return counts;
}

// The ids that come up in many draws.
std::set<size_t> reached(const SamplerOptions& options, const std::vector<float>& logits) {
  const std::vector<size_t> counts = draws(options, logits, 4000);
  std::set<size_t> ids;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0) ids.insert(i);
  }
  return ids;
}

std::vector<float> logs(const std::vector<double>& probabilities) {
  std::vector<float> result;
  for (const double p : probabilities) result.push_back(static_cast<float>(std::log(p)));
  return result;
}

// Pearson's statistic against exact probabilities.
double chi_square(const std::vector<size_t>& counts, const std::vector<double>& probabilities, double total) {
  double sum = 0.0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double wanted = probabilities[i] * total;
    sum += (static_cast<double>(counts[i]) - wanted) * (static_cast<double>(counts[i]) - wanted) / wanted;
  }
  return sum;
}

TEST(Rng, IsXoshiro256StarStarSeededBySplitmix64) {
  // Computed with the formulas of the papers in another language (integers without bounds, reduced modulo 2^64).
  Rng zero(0);
  EXPECT_EQ(zero.next(), 0x99EC5F36CB75F2B4u);
  EXPECT_EQ(zero.next(), 0xBF6E1F784956452Au);
  EXPECT_EQ(zero.next(), 0x1A5F849D4933E6E0u);
  Rng other(42);
  EXPECT_EQ(other.next(), 0x15780B2E0C2EC716u);
  EXPECT_EQ(other.next(), 0x6104D9866D113A7Eu);
}

TEST(Rng, UniformLiesInTheUnitIntervalAndIsFlat) {
  Rng rng(3);
  std::vector<size_t> bins(16, 0);
  for (int i = 0; i < 160'000; ++i) {
    const double u = rng.uniform();
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    ++bins[static_cast<size_t>(u * 16.0)];
  }
  EXPECT_LT(chi_square(bins, std::vector<double>(16, 1.0 / 16), 160'000), 37.7);  // 15 degrees of freedom, p = 0.001
}

TEST(SamplerExp, IsWithinTwoUlpOfTheTrueValue) {
  for (double x = 0.0; x > -700.0; x -= 0.0137) {
    const double truth = std::exp(x);
    ASSERT_LE(std::fabs(exp_nonpositive(x) - truth), 2.0 * (std::nextafter(truth, 2.0 * truth) - truth)) << x;
  }
  EXPECT_EQ(exp_nonpositive(0.0), 1.0);
  EXPECT_EQ(exp_nonpositive(-0.0), 1.0);
  EXPECT_EQ(exp_nonpositive(-1.0), 0x1.78b56362cef38p-2);
  EXPECT_EQ(exp_nonpositive(-800.0), 0.0);
  EXPECT_EQ(exp_nonpositive(-std::numeric_limits<double>::infinity()), 0.0);
}

TEST(Sampler, GreedyTakesTheLargestAndTheLowestIdOfATie) {
  EXPECT_EQ(one(greedy(), {0.5f, 2.0f, 1.0f}), 1);
  EXPECT_EQ(one(greedy(), {1.0f, 2.0f, 2.0f, 2.0f}), 1);
  EXPECT_EQ(one(greedy(), {-0.0f, 0.0f}), 0);
  EXPECT_EQ(one(greedy(), {kNan, -5.0f, kNan}), 1);
  EXPECT_EQ(one(greedy(), {kNan, kNan}), 0);
  EXPECT_EQ(one(greedy(), {-kInfinity, -kInfinity}), 0);
  EXPECT_EQ(one(greedy(), {1.0f, kInfinity}), 1);
}

TEST(Sampler, DrawsFollowTheSoftmax) {
  const std::vector<double> p = {0.4, 0.3, 0.15, 0.1, 0.05};
  EXPECT_LT(chi_square(draws(plain(), logs(p), 50'000), p, 50'000), 18.5);  // 4 degrees of freedom, p = 0.001
}

TEST(Sampler, TemperatureSharpensAndFlattens) {
  SamplerOptions options = plain();
  options.temperature = 0.5f;  // squares: 0.8 to 0.64, 0.2 to 0.04
  EXPECT_LT(chi_square(draws(options, logs({0.8, 0.2}), 50'000), {0.64 / 0.68, 0.04 / 0.68}, 50'000), 10.9);
  options.temperature = 2.0f;  // square roots: 3 : 1
  EXPECT_LT(chi_square(draws(options, logs({0.9, 0.1}), 50'000), {0.75, 0.25}, 50'000), 10.9);
}

TEST(Sampler, TopKKeepsTheBestKAndTheLowestIdsOfATie) {
  SamplerOptions options = plain();
  options.top_k = 2;
  EXPECT_EQ(reached(options, {0.0f, 1.0f, 0.5f, 0.4f}), (std::set<size_t>{1, 2}));
  EXPECT_EQ(reached(options, {1.0f, 1.0f, 1.0f, 1.0f}), (std::set<size_t>{0, 1}));
  options.top_k = 1;
  EXPECT_EQ(reached(options, {0.0f, 1.0f, 1.0f}), (std::set<size_t>{1}));
  options.top_k = 99;
  EXPECT_EQ(reached(options, {0.0f, 0.1f, 0.2f}).size(), 3u);
}

TEST(Sampler, TopPKeepsTheFewestThatReachIt) {
  const std::vector<float> logits = logs({0.1, 0.5, 0.25, 0.15});
  SamplerOptions options = plain();
  options.top_p = 0.4f;
  EXPECT_EQ(reached(options, logits), (std::set<size_t>{1}));
  options.top_p = 0.6f;
  EXPECT_EQ(reached(options, logits), (std::set<size_t>{1, 2}));
  options.top_p = 0.8f;
  EXPECT_EQ(reached(options, logits), (std::set<size_t>{1, 2, 3}));
  options.top_p = 0.95f;
  EXPECT_EQ(reached(options, logits), (std::set<size_t>{0, 1, 2, 3}));
}

TEST(Sampler, TopPOfManyTokensSortsInSteps) {
  const std::vector<float> logits(1000, 0.0f);  // all alike: the lowest 250 ids are a quarter
  SamplerOptions options = plain();
  options.top_p = 0.25f;
  const std::vector<size_t> counts = draws(options, logits, 4000);
  for (size_t i = 0; i < counts.size(); ++i) EXPECT_EQ(counts[i] > 0, i < 250) << i;
}

TEST(Sampler, MinPIsMeasuredAgainstTheBest) {
  const std::vector<float> logits = logs({0.1, 0.5, 0.25, 0.15});  // ratios 0.2, 1, 0.5, 0.3
  SamplerOptions options = plain();
  options.min_p = 0.25f;
  EXPECT_EQ(reached(options, logits), (std::set<size_t>{1, 2, 3}));
  options.min_p = 0.4f;
  EXPECT_EQ(reached(options, logits), (std::set<size_t>{1, 2}));
  options.min_p = 1.0f;
  EXPECT_EQ(reached(options, {0.0f, 1.0f, 1.0f}), (std::set<size_t>{1, 2}));
}

TEST(Sampler, StepsComeInTheirOrder) {
  // Top-k first: of {0.4, 0.3, 0.2, 0.1} two stay with 0.571 and 0.429, so top-p 0.5 keeps one. The other way round
  // top-p would have kept two.
  SamplerOptions options = plain();
  options.top_k = 2;
  options.top_p = 0.5f;
  EXPECT_EQ(reached(options, logs({0.4, 0.3, 0.2, 0.1})), (std::set<size_t>{0}));
  // Temperature last: min-p looks at the ratio 0.25, not at its square root 0.5.
  options = plain();
  options.temperature = 2.0f;
  options.min_p = 0.3f;
  EXPECT_EQ(reached(options, logs({0.8, 0.2})), (std::set<size_t>{0}));
  // Bias before penalties: (1 + 3) / 2 = 2 beats 1.9; 1 / 2 + 3 would beat 3.4 as well.
  options = greedy();
  options.logit_bias = {{0, 3.0f}};
  options.repeat_penalty = 2.0f;
  EXPECT_EQ(one(options, {1.0f, 1.9f}, {0}), 0);
  EXPECT_EQ(one(options, {1.0f, 3.4f}, {0}), 1);
}

TEST(Sampler, LogitBiasAddsAndForbids) {
  SamplerOptions options = greedy();
  options.logit_bias = {{2, 5.0f}};
  EXPECT_EQ(one(options, {1.0f, 2.0f, 0.0f}), 2);
  options.logit_bias = {{1, -kInfinity}};
  EXPECT_EQ(one(options, {1.0f, 2.0f, 0.0f}), 0);
  options = plain();
  options.logit_bias = {{1, -kInfinity}};
  EXPECT_EQ(reached(options, {0.0f, 9.0f, 0.0f}), (std::set<size_t>{0, 2}));
}

TEST(Sampler, RepeatPenaltyDividesPositiveAndMultipliesNegative) {
  SamplerOptions options = greedy();
  options.repeat_penalty = 2.0f;
  std::vector<float> logits = {4.0f, -3.0f, 1.0f, 0.0f};
  Sampler sampler(options, logits.size());
  for (const TokenId id : {0, 1, 3, 0}) sampler.accept(id);
  EXPECT_EQ(sampler.sample(logits), 0);
  EXPECT_EQ(logits, (std::vector<float>{2.0f, -6.0f, 1.0f, 0.0f}));  // once, however often the token came
}

TEST(Sampler, FrequencyCountsAndPresenceDoesNot) {
  SamplerOptions options = greedy();
  options.frequency_penalty = 0.5f;
  options.presence_penalty = 0.25f;
  std::vector<float> logits = {4.0f, 4.0f, 4.0f};
  Sampler sampler(options, logits.size());
  for (const TokenId id : {0, 1, 0, 0}) sampler.accept(id);
  EXPECT_EQ(sampler.sample(logits), 2);
  EXPECT_EQ(logits, (std::vector<float>{4.0f - 3 * 0.5f - 0.25f, 4.0f - 0.5f - 0.25f, 4.0f}));
}

TEST(Sampler, PenaltiesForgetWhatLeftTheWindow) {
  SamplerOptions options = greedy();
  options.presence_penalty = 10.0f;
  options.penalty_window = 2;
  EXPECT_EQ(one(options, {3.0f, 2.0f, 1.0f}, {0, 1}), 2);
  EXPECT_EQ(one(options, {3.0f, 2.0f, 1.0f}, {0, 1, 2}), 0);
  EXPECT_EQ(one(options, {3.0f, 2.0f, 1.0f}, {0, 1, 2, 0}), 1);
  options.penalty_window = 0;
  EXPECT_EQ(one(options, {3.0f, 2.0f, 1.0f}, {0, 0, 0}), 0);
}

TEST(Sampler, ImpossibleTokensAreNeverDrawn) {
  EXPECT_EQ(reached(plain(), {-kInfinity, 1.0f, kNan, 0.0f, -1e30f}), (std::set<size_t>{1, 3}));
  EXPECT_EQ(reached(plain(), {-kInfinity, kNan}), (std::set<size_t>{0}));
  SamplerOptions options{.seed = 1};  // the default chain
  EXPECT_EQ(reached(options, {-kInfinity, kNan, -kInfinity}), (std::set<size_t>{0}));
  EXPECT_EQ(reached(options, {0.0f, kInfinity}), (std::set<size_t>{1}));
  EXPECT_EQ(reached(options, {-3e38f, 3e38f}), (std::set<size_t>{1}));
}

std::vector<float> test_logits(size_t size, uint64_t seed) {
  Rng rng(seed);
  std::vector<float> logits(size);
  for (float& logit : logits) logit = static_cast<float>(rng.uniform() * 12.0 - 6.0);
  return logits;
}

std::vector<TokenId> sequence(const SamplerOptions& options, size_t vocabulary, int count) {
  Sampler sampler(options, vocabulary);
  std::vector<TokenId> ids;
  for (int i = 0; i < count; ++i) {
    std::vector<float> logits = test_logits(vocabulary, static_cast<uint64_t>(i));
    ids.push_back(sampler.sample(logits));
    sampler.accept(ids.back());
  }
  return ids;
}

// These ids are the promise that a seed means the same text everywhere. A change of them is a breaking change.
TEST(Sampler, ASeedGivesTheSameIdsEverywhere) {
  EXPECT_EQ(sequence({.seed = 42}, 1000, 12),
            (std::vector<TokenId>{734, 834, 878, 492, 209, 598, 582, 278, 56, 142, 355, 890}));
  EXPECT_EQ(sequence(plain(), 1000, 8), (std::vector<TokenId>{701, 251, 856, 995, 969, 899, 52, 66}));
  SamplerOptions all{.temperature = 1.3f,
                     .top_k = 0,
                     .top_p = 0.9f,
                     .min_p = 0.02f,
                     .repeat_penalty = 1.1f,
                     .presence_penalty = 0.2f,
                     .frequency_penalty = 0.1f,
                     .penalty_window = 4,
                     .logit_bias = {{5, 2.5f}},
                     .seed = 9};
  EXPECT_EQ(sequence(all, 1000, 8), (std::vector<TokenId>{5, 402, 231, 512, 541, 772, 876, 95}));
}

TEST(Sampler, OtherSeedsGiveOtherIds) { EXPECT_NE(sequence({.seed = 1}, 1000, 12), sequence({.seed = 2}, 1000, 12)); }

TEST(Sampler, CountsItsMemory) {
  const Sampler sampler({}, 50'000);
  EXPECT_GE(sampler.memory_bytes(), 50'000u * 8 + 2 * 64 * 4);
  EXPECT_LT(sampler.memory_bytes(), 50'000u * 8 + 4096);
}

std::string complaint(const SamplerOptions& options, std::optional<size_t> vocabulary = std::nullopt) {
  const Result<void> result = check(options, vocabulary);
  if (result.ok()) return "";
  EXPECT_EQ(result.error().code, ErrorCode::usage);
  return result.error().message;
}

TEST(SamplerCheck, NamesTheFlagTheRangeAndTheValue) {
  EXPECT_EQ(complaint({}), "");
  EXPECT_EQ(complaint({.temperature = -1.0f}), "--temp must lie in [0, infinity), not -1");
  EXPECT_EQ(complaint({.temperature = kNan}), "--temp must lie in [0, infinity), not nan");
  EXPECT_EQ(complaint({.temperature = kInfinity}), "--temp must lie in [0, infinity), not inf");
  EXPECT_EQ(complaint({.top_k = -3}), "--top-k must be 0 (off) or more, not -3");
  EXPECT_EQ(complaint({.top_p = 1.5f}), "--top-p must lie in (0, 1], not 1.5");
  EXPECT_EQ(complaint({.top_p = 0.0f}), "--top-p must lie in (0, 1], not 0");
  EXPECT_EQ(complaint({.min_p = -0.5f}), "--min-p must lie in [0, 1], not -0.5");
  EXPECT_EQ(complaint({.min_p = kNan}), "--min-p must lie in [0, 1], not nan");
  EXPECT_EQ(complaint({.repeat_penalty = 0.0f}), "--repeat-penalty must lie in (0, infinity), not 0");
  EXPECT_EQ(complaint({.presence_penalty = kInfinity}), "--presence-penalty must be a number, not inf");
  EXPECT_EQ(complaint({.frequency_penalty = kNan}), "--frequency-penalty must be a number, not nan");
  EXPECT_EQ(complaint({.penalty_window = -1}), "--penalty-window must lie in [0, 1048576], not -1");
  EXPECT_EQ(complaint({.logit_bias = {{-1, 1.0f}}}),
            "--logit-bias needs token ids in [0, size of the vocabulary), not -1");
  EXPECT_EQ(complaint({.logit_bias = {{9, 1.0f}}}, 9), "--logit-bias needs token ids in [0, 9), not 9");
  EXPECT_EQ(complaint({.logit_bias = {{2, kInfinity}}}), "--logit-bias of token 2 must be a number or -inf, not inf");
  EXPECT_EQ(complaint({.logit_bias = {{2, -kInfinity}}}, 9), "");
}

}  // namespace
}  // namespace ridge
