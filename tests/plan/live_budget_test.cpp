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
  EXPECT_EQ(step.why, "MemAvailable 30.0 MiB < floor 100 MiB");
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

TEST_F(LiveBudgetTest, HitsCountOnlyWhereTheCgroupHasNothingLeft) {
  MemoryPressure pressure{.available = kGiB, .cgroup_left = kGiB, .limit_hits = 0};
  (void)at(seconds(0), pressure);
  pressure.limit_hits = 9;
  EXPECT_EQ(at(seconds(2), pressure).give, 0u) << "pages of files filled it";
  pressure = {.available = kGiB, .cgroup_left = 99 * kMiB, .limit_hits = 12};
  LiveStep step = at(seconds(4), pressure);
  EXPECT_EQ(step.give, 10 * kMiB);
  EXPECT_EQ(step.why, "the memory cgroup hit its limit 3 times");
  pressure.cgroup_left = 9 * kMiB;
  EXPECT_EQ(at(seconds(60), pressure, 10 * kMiB).take, 0u) << "less is left than a step takes";
  pressure.cgroup_left = 10 * kMiB;
  EXPECT_EQ(at(seconds(62), pressure, 10 * kMiB).take, 10 * kMiB);
}

TEST_F(LiveBudgetTest, TheCalmGrowsWhileTakingBringsTheTroubleBack) {
  seconds now{0};
  std::vector<seconds> rounds;  // from trouble to what was taken after it
  for (int round = 0; round < 9; ++round) {
    EXPECT_GT(at(now, available(0)).give, 0u);
    const seconds trouble = now;
    do {
      now += seconds(2);
    } while (at(now, available(kGiB), 10 * kMiB).take == 0);
    rounds.push_back(now - trouble);
    now += seconds(2);
  }
  EXPECT_EQ(rounds[0], seconds(10));
  EXPECT_EQ(rounds[1], seconds(20));
  EXPECT_EQ(rounds[2], seconds(40));
  EXPECT_EQ(rounds[8], seconds(600)) << "ten minutes at most";
  now += seconds(3600);
  EXPECT_GT(at(now, available(0)).give, 0u);
  EXPECT_EQ(at(now + seconds(10), available(kGiB), 10 * kMiB).take, 10 * kMiB) << "a long peace is forgiven";
}

TEST_F(LiveBudgetTest, WhatCouldNotBeTakenIsTroubleToo) {
  EXPECT_GT(at(seconds(0), available(0)).give, 0u);
  EXPECT_EQ(at(seconds(11), available(kGiB), 10 * kMiB).take, 10 * kMiB);
  live_.failed(LiveBudget::Clock::time_point(seconds(11)));
  EXPECT_EQ(at(seconds(25), available(kGiB), 10 * kMiB).take, 0u);
  EXPECT_EQ(at(seconds(31), available(kGiB), 10 * kMiB).take, 10 * kMiB);
}

TEST(DefaultFloor, IsAShareWithAMost) {
  EXPECT_EQ(default_floor(kGiB), 32 * kMiB);
  EXPECT_EQ(default_floor(64 * kGiB), 256 * kMiB);
}

}  // namespace
}  // namespace ridge
