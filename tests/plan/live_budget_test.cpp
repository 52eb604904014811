#include "plan/live_budget.h"

#include <gtest/gtest.h>

#include "base/units.h"

namespace ridge {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class LiveBudgetTest : public ::testing::Test {
 protected:
  LiveStep at(milliseconds when, MemoryPressure pressure, uint64_t given_back = 0) {
    return live_.look(pressure, given_back, LiveBudget::Clock::time_point(when));
  }
  static MemoryPressure available(uint64_t bytes) { return {.available = bytes}; }
  LiveBudget live_{{.floor = 100 * kMiB, .step = 10 * kMiB}};
};

TEST_F(LiveBudgetTest, NothingHappensWithoutASign) {
  EXPECT_EQ(at(seconds(0), {}).give, 0u);
  LiveStep step = at(seconds(60), available(kGiB));
  EXPECT_EQ(step.give + step.take, 0u);
}

TEST_F(LiveBudgetTest, BelowTheFloorGoesWhatIsMissingAtLeastAStep) {
  EXPECT_EQ(at(seconds(0), available(99 * kMiB)).give, 10 * kMiB);
  EXPECT_EQ(at(milliseconds(500), available(0)).give, 0u) << "a rest after each step";
  LiveStep step = at(milliseconds(1500), available(30 * kMiB));
  EXPECT_EQ(step.give, 70 * kMiB);
  EXPECT_EQ(step.why, "30.0 MiB of memory are available, less than 100 MiB");
}

TEST_F(LiveBudgetTest, LimitHitsCountFromTheFirstLook) {
  MemoryPressure pressure{.available = kGiB, .limit_hits = 7};
  EXPECT_EQ(at(seconds(0), pressure).give, 0u);
  EXPECT_EQ(at(seconds(2), pressure).give, 0u);
  pressure.limit_hits = 8;
  EXPECT_EQ(at(seconds(4), pressure).give, 10 * kMiB);
  EXPECT_EQ(at(seconds(6), pressure).give, 0u);
}

TEST_F(LiveBudgetTest, StallsAreASign) {
  EXPECT_EQ(at(seconds(0), {.available = kGiB, .stalled = 0.05}).give, 0u);
  EXPECT_EQ(at(seconds(2), {.available = kGiB, .stalled = 0.25}).give, 10 * kMiB);
}

TEST_F(LiveBudgetTest, WhatWentComesBackInStepsWhenItIsCalm) {
  EXPECT_GT(at(seconds(0), available(90 * kMiB)).give, 0u);
  EXPECT_EQ(at(seconds(5), available(kGiB), 25 * kMiB).take, 0u) << "not calm for long enough";
  EXPECT_EQ(at(seconds(11), available(205 * kMiB), 25 * kMiB).take, 0u) << "it would bring the trouble back";
  LiveStep step = at(seconds(12), available(kGiB), 25 * kMiB);
  EXPECT_EQ(step.take, 10 * kMiB);
  EXPECT_EQ(step.give, 0u);
  EXPECT_EQ(at(seconds(14), available(kGiB), 5 * kMiB).take, 5 * kMiB);
  EXPECT_EQ(at(seconds(16), available(kGiB), 0).take, 0u);
}

TEST(DefaultFloor, IsAShareWithAMost) {
  EXPECT_EQ(default_floor(kGiB), 32 * kMiB);
  EXPECT_EQ(default_floor(64 * kGiB), 256 * kMiB);
}

}  // namespace
}  // namespace ridge
