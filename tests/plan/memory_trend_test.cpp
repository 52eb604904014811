// Fits on made-up numbers with known answers, and on the document's own ladder (docs/ladder.md).
#include "plan/memory_trend.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace ridge {
namespace {

// 84 NPU contexts on a ROCK 5C, of which 18 were loaded: contexts and added PSS in MiB.
const std::vector<Level> kDocument = {{1, 154.9}, {4, 555.1}, {8, 1052.1}, {12, 1612.8}, {16, 2144.4}, {18, 2420.9}};
constexpr double kAll = 84, kMiBPerGiB = 1024;

double to_one_decimal(double gib) { return std::round(gib * 10) / 10; }

TEST(MemoryTrend, TheDocumentTookTheLastStepForItsPss) {
  EXPECT_DOUBLE_EQ(to_one_decimal(last_step_at(kDocument, kAll).value() / kMiBPerGiB), 11.3);
}

TEST(MemoryTrend, AndTheProportionForItsDeviceMappings) {
  const std::vector<Level> mapped = {{16, 1.357}};
  EXPECT_DOUBLE_EQ(to_one_decimal(proportional_at(mapped, kAll).value()), 7.1);
}

TEST(MemoryTrend, LeastSquaresOnTheDocumentsTable) {
  const Line line = fit_line(kDocument).value();
  EXPECT_NEAR(line.slope, 133.2, 0.1);
  EXPECT_NEAR(line.intercept, 13.2, 0.5);
  const Prediction all = line_at(kDocument, kAll).value();
  EXPECT_EQ(all.freedom, 4u);
  EXPECT_DOUBLE_EQ(to_one_decimal(all.value / kMiBPerGiB), 10.9);
  // The document's own figure lies above: its last step was steeper than its line.
  EXPECT_GT(last_step_at(kDocument, kAll).value(), all.value);
  EXPECT_LT(all.low, all.value);
  EXPECT_GT(all.high, all.value);
  EXPECT_GT(all.low / kMiBPerGiB, 7.75) << "even the lower end is more than the board has";
}

// Of FP16 weights a self-attention graph has 32 MiB, a cross-attention 24 and a feed-forward 64; they come in turn.
TEST(MemoryTrend, TheDocumentsOverheadIsMoreThanThreeTimesItsWeights) {
  const double weights[] = {32, 24, 64};
  std::vector<GrowthStep> steps;
  double before = 0, loaded = 0;
  size_t context = 0;
  for (const Level& l : kDocument) {
    GrowthStep step{.weights = {0, 0, 0}, .added = l.value - before};
    for (; static_cast<double>(context) < l.contexts; ++context) {
      step.weights[context % 3] += weights[context % 3];
      loaded += weights[context % 3];
    }
    before = l.value;
    steps.push_back(step);
  }
  const RatioTrend trend = RatioTrend::fit(steps).value();
  EXPECT_NEAR(trend.ratio_of_all(), 2420.9 / loaded, 1e-9);
  EXPECT_NEAR(trend.ratio_of_all(), 3.4, 0.05);
  const std::vector<double> rest = {22 * 32, 22 * 24, 22 * 64};
  const Prediction more = trend.rest(rest);
  const double all = (more.value + before) / kMiBPerGiB;
  EXPECT_NEAR(all, 11.0, 0.2);
  EXPECT_LT((more.low + before) / kMiBPerGiB, 11.3);
  EXPECT_GT((more.high + before) / kMiBPerGiB, 11.3) << "the interval by kind holds the document's figure";
}

TEST(MemoryTrend, AnExactLineHasNoInterval) {
  const std::vector<Level> levels = {{1, 5}, {2, 7}, {3, 9}, {7, 17}};
  const Prediction p = line_at(levels, 100).value();
  EXPECT_NEAR(p.value, 203, 1e-9);
  EXPECT_NEAR(p.high - p.low, 0, 1e-6);
}

TEST(MemoryTrend, TooLittleGivesNothingOrNoInterval) {
  EXPECT_FALSE(fit_line({}).has_value());
  const std::vector<Level> one = {{3, 9}};
  EXPECT_FALSE(line_at(one, 5).has_value());
  EXPECT_FALSE(last_step_at(one, 5).has_value());
  EXPECT_DOUBLE_EQ(proportional_at(one, 5).value(), 15);
  const std::vector<Level> same = {{3, 9}, {3, 10}};
  EXPECT_FALSE(line_at(same, 5).has_value());
  EXPECT_FALSE(last_step_at(same, 5).has_value());
  const std::vector<Level> two = {{3, 9}, {4, 12}};
  const Prediction p = line_at(two, 5).value();
  EXPECT_EQ(p.freedom, 0u);
  EXPECT_DOUBLE_EQ(p.low, p.high);
}

// The prediction interval of a straight line with independent errors holds 95 of 100 new observations.
TEST(MemoryTrend, IntervalsOfALineHoldWhatTheyPromise) {
  std::mt19937 random(7);
  std::normal_distribution<double> noise(0, 5);
  int held = 0;
  constexpr int kTrials = 2000;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<Level> levels;
    for (int n = 1; n <= 12; ++n) levels.push_back({static_cast<double>(n), 10 + 3.0 * n + noise(random)});
    const Prediction p = line_at(levels, 40).value();
    const double truth = 10 + 3.0 * 40 + noise(random);
    held += p.low <= truth && truth <= p.high;
  }
  EXPECT_NEAR(static_cast<double>(held) / kTrials, 0.95, 0.02);
}

// Two kinds with ratios of their own, and errors that grow with the root of the weights.
TEST(MemoryTrend, IntervalsByKindHoldWhatTheyPromise) {
  std::mt19937 random(8);
  std::normal_distribution<double> noise(0, 1);
  int held = 0;
  constexpr int kTrials = 2000;
  auto added = [&](double a, double b) { return 1.1 * a + 2.5 * b + 0.3 * std::sqrt(a + b) * noise(random); };
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<GrowthStep> steps;
    for (int n = 0; n < 16; ++n) {
      const double a = n % 2 == 0 ? 8 : 0, b = n % 2 == 0 ? 0 : 20;
      steps.push_back({{a, b}, added(a, b)});
    }
    const RatioTrend trend = RatioTrend::fit(steps).value();
    const std::vector<double> rest = {8 * 30, 20 * 30};
    double truth = 0;
    for (int n = 0; n < 30; ++n) truth += added(8, 0) + added(0, 20);
    const Prediction p = trend.rest(rest);
    held += p.low <= truth && truth <= p.high;
  }
  EXPECT_NEAR(static_cast<double>(held) / kTrials, 0.95, 0.02);
}

TEST(MemoryTrend, RatiosAreFoundByKind) {
  const std::vector<GrowthStep> steps = {{{10, 0, 0}, 11}, {{0, 20, 0}, 50}, {{10, 0, 0}, 11}, {{0, 40, 0}, 100}};
  const RatioTrend trend = RatioTrend::fit(steps).value();
  EXPECT_NEAR(trend.ratio(0).value(), 1.1, 1e-12);
  EXPECT_NEAR(trend.ratio(1).value(), 2.5, 1e-12);
  EXPECT_FALSE(trend.ratio(2).has_value()) << "a kind that was not seen";
  const std::vector<double> rest = {100, 10, 5};
  EXPECT_NEAR(trend.rest(rest).value, 110 + 25 + 5 * 172.0 / 80, 1e-9);
}

TEST(MemoryTrend, KindsThatAlwaysComeTogetherShareARatio) {
  const std::vector<GrowthStep> steps = {{{10, 20}, 60}, {{10, 20}, 66}, {{10, 20}, 54}};
  const RatioTrend trend = RatioTrend::fit(steps).value();
  EXPECT_FALSE(trend.ratio(0) || trend.ratio(1));
  EXPECT_DOUBLE_EQ(trend.ratio_of_all(), 2);
  const std::vector<double> rest = {0, 30};
  const Prediction p = trend.rest(rest);
  EXPECT_DOUBLE_EQ(p.value, 60);
  EXPECT_EQ(p.freedom, 2u);
  EXPECT_LT(p.low, p.value);
}

TEST(MemoryTrend, NoWeightsNoRatio) {
  EXPECT_FALSE(RatioTrend::fit({}).has_value());
  const std::vector<GrowthStep> steps = {{{0, 0}, 5}};
  EXPECT_FALSE(RatioTrend::fit(steps).has_value());
}

TEST(MemoryTrend, QuantilesOfStudent) {
  EXPECT_DOUBLE_EQ(student_t(1), 12.706);
  EXPECT_DOUBLE_EQ(student_t(30), 2.042);
  EXPECT_NEAR(student_t(31), 2.0395, 0.0003);
  EXPECT_NEAR(student_t(60), 2.0003, 0.0002);
  EXPECT_NEAR(student_t(1000000), 1.95996, 1e-4);
}

}  // namespace
}  // namespace ridge
