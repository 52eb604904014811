#include "analyze/bench_stats.h"

#include <gtest/gtest.h>

#include <vector>

namespace ridge {
namespace {

using Samples = std::vector<double>;

TEST(BenchStats, MedianOfOddAndEvenNumbers) {
  EXPECT_EQ(median(Samples{3}), 3);
  EXPECT_EQ(median(Samples{9, 1, 5}), 5);
  EXPECT_EQ(median(Samples{4, 1, 3, 2}), 2.5);
}

TEST(BenchStats, BelowSixSamplesTheRangeStandsInWithItsCoverage) {
  MedianInterval one = median_interval(Samples{7});
  EXPECT_EQ(one.low, 7);
  EXPECT_EQ(one.high, 7);
  EXPECT_EQ(one.coverage, 0);
  MedianInterval five = median_interval(Samples{5, 1, 4, 2, 3});
  EXPECT_EQ(five.low, 1);
  EXPECT_EQ(five.high, 5);
  EXPECT_DOUBLE_EQ(five.coverage, 0.9375);
}

// Coverage by the binomial distribution: n = 6: 1 − 2/64; n = 9, k = 2: 1 − 2 (1 + 9)/512; n = 20, k = 6: 0.9586.
TEST(BenchStats, IntervalsAreOrderStatistics) {
  Samples six{1, 2, 3, 4, 5, 6};
  EXPECT_EQ(median_interval(six).low, 1);
  EXPECT_EQ(median_interval(six).high, 6);
  EXPECT_DOUBLE_EQ(median_interval(six).coverage, 1 - 2.0 / 64);
  Samples nine{9, 8, 7, 6, 5, 4, 3, 2, 1};
  EXPECT_EQ(median_interval(nine).low, 2);
  EXPECT_EQ(median_interval(nine).high, 8);
  EXPECT_DOUBLE_EQ(median_interval(nine).coverage, 1 - 2.0 * 10 / 512);
  Samples twenty;
  for (int i = 1; i <= 20; ++i) twenty.push_back(i);
  EXPECT_EQ(median_interval(twenty).low, 6);
  EXPECT_EQ(median_interval(twenty).high, 15);
  EXPECT_NEAR(median_interval(twenty).coverage, 0.9586, 1e-4);
}

// Two-sided exact values: all of one side above all of the other gives 2 / (n + m choose n).
TEST(BenchStats, RankTestOfSeparatedSamples) {
  RankTest three = mann_whitney(Samples{1, 2, 3}, Samples{4, 5, 6});
  EXPECT_EQ(three.u, 0);
  EXPECT_DOUBLE_EQ(three.p, 0.1);
  RankTest five = mann_whitney(Samples{10, 11, 12, 13, 14}, Samples{1, 2, 3, 4, 5});
  EXPECT_EQ(five.u, 25);
  EXPECT_DOUBLE_EQ(five.p, 2.0 / 252);
  EXPECT_DOUBLE_EQ(smallest_p(3, 3), 0.1);
  EXPECT_DOUBLE_EQ(smallest_p(5, 5), 2.0 / 252);
  EXPECT_DOUBLE_EQ(smallest_p(1, 1), 1);
}

// U = 2 of 4 × 5: P(U ≤ 2) = (1 + 1 + 2) / 126, from the table of Mann and Whitney (1947).
TEST(BenchStats, RankTestAgainstThePublishedTable) {
  RankTest test = mann_whitney(Samples{1, 2, 3, 6}, Samples{4, 5, 7, 8, 9});
  EXPECT_EQ(test.u, 2);
  EXPECT_DOUBLE_EQ(test.p, 2 * 4.0 / 126);
  // The other way round it is the same question.
  RankTest other = mann_whitney(Samples{4, 5, 7, 8, 9}, Samples{1, 2, 3, 6});
  EXPECT_EQ(other.u, 18);
  EXPECT_DOUBLE_EQ(other.p, test.p);
}

TEST(BenchStats, RankTestTakesTies) {
  EXPECT_DOUBLE_EQ(mann_whitney(Samples{5, 5, 5}, Samples{5, 5}).p, 1);
  EXPECT_DOUBLE_EQ(mann_whitney(Samples{5, 5, 5}, Samples{5, 5}).u, 3);
  // {1, 2} against {2, 3}: mid-ranks 1, 2.5, 2.5, 4; of the six rank sums 3.5, 3.5, 5, 5, 6.5, 6.5 four are as far from
  // 5 as the observed 3.5.
  RankTest test = mann_whitney(Samples{1, 2}, Samples{2, 3});
  EXPECT_EQ(test.u, 0.5);
  EXPECT_DOUBLE_EQ(test.p, 4.0 / 6);
}

TEST(BenchStats, RankTestOfTheMostSamples) {
  Samples low, high;
  for (size_t i = 0; i < kMostRanked; ++i) {
    low.push_back(static_cast<double>(i));
    high.push_back(static_cast<double>(i + kMostRanked));
  }
  EXPECT_DOUBLE_EQ(mann_whitney(low, high).p, smallest_p(kMostRanked, kMostRanked));
  EXPECT_LT(smallest_p(kMostRanked, kMostRanked), 1e-28);
  EXPECT_GT(mann_whitney(low, low).p, 0.99);
}

}  // namespace
}  // namespace ridge
