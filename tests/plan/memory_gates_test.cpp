#include "plan/memory_gates.h"

#include <gtest/gtest.h>

namespace ridge {
namespace {

MemoryState state(uint64_t available, uint64_t swap_used = 0, std::optional<uint64_t> cgroup_left = {}) {
  MemoryState s;
  s.pss = 10 * kMiB;
  s.available = available;
  s.swap_used = swap_used;
  s.cgroup.left = cgroup_left;
  s.cgroup.reason = "cgroup /box: 512 MiB limit";
  return s;
}

std::string said(const std::optional<std::string>& why) { return why.value_or(""); }

TEST(MemoryGates, AvailableIsLookedAtBeforeAndAfter) {
  const MemoryGates gates({}, state(4 * kGiB));
  EXPECT_FALSE(gates.before(100 * kMiB, state(1700 * kMiB)));
  EXPECT_NE(said(gates.before(300 * kMiB, state(1700 * kMiB))).find("--stop-available"), std::string::npos);
  EXPECT_FALSE(gates.after(state(1536 * kMiB)));
  EXPECT_NE(said(gates.after(state(1535 * kMiB))).find("1.50 GiB"), std::string::npos);
}

TEST(MemoryGates, SwapCountsFromTheBaseLine) {
  const MemoryGates gates({}, state(4 * kGiB, 100 * kMiB));
  EXPECT_FALSE(gates.after(state(4 * kGiB, 116 * kMiB)));
  EXPECT_NE(said(gates.after(state(4 * kGiB, 117 * kMiB))).find("17.0 MiB"), std::string::npos);
  EXPECT_FALSE(gates.after(state(4 * kGiB, 0))) << "swap that came back is no reason to stop";
}

TEST(MemoryGates, TheCgroupsLimitIsNeverReached) {
  const MemoryGates gates({}, state(64 * kGiB, 0, 512 * kMiB));
  EXPECT_FALSE(gates.before(400 * kMiB, state(64 * kGiB, 0, 512 * kMiB)));
  EXPECT_NE(said(gates.before(490 * kMiB, state(64 * kGiB, 0, 512 * kMiB))).find("/box"), std::string::npos);
  EXPECT_NE(said(gates.after(state(64 * kGiB, 0, 31 * kMiB))).find("/box"), std::string::npos);
  EXPECT_TRUE(gates.before(UINT64_MAX / 2, state(64 * kGiB, 0, 512 * kMiB))) << "no wrap-around";
}

TEST(MemoryGates, ABudgetHolds) {
  const MemoryGates gates({.budget = 100 * kMiB}, state(64 * kGiB));
  EXPECT_FALSE(gates.before(90 * kMiB, state(64 * kGiB)));
  EXPECT_NE(said(gates.before(91 * kMiB, state(64 * kGiB))).find("--memory"), std::string::npos);
  MemoryState over = state(64 * kGiB);
  over.pss = 101 * kMiB;
  EXPECT_TRUE(gates.after(over));
}

TEST(MemoryGates, WhatIsNotKnownStopsNothing) {
  const MemoryGates gates({}, MemoryState{});
  EXPECT_FALSE(gates.before(100 * kGiB, MemoryState{}));
  EXPECT_FALSE(gates.after(MemoryState{}));
  EXPECT_EQ(gates.room().bytes, UINT64_MAX);
}

TEST(MemoryGates, RoomIsTheTightestGates) {
  EXPECT_EQ(MemoryGates({}, state(4 * kGiB)).room().bytes, 4 * kGiB - 1536 * kMiB);
  EXPECT_EQ(MemoryGates({}, state(kGiB)).room().bytes, 0u);
  EXPECT_EQ(MemoryGates({}, state(64 * kGiB, 0, 512 * kMiB)).room().bytes, 480 * kMiB);
  const MemoryGates budget({.budget = 100 * kMiB}, state(64 * kGiB, 0, 512 * kMiB));
  EXPECT_EQ(budget.room().bytes, 90 * kMiB);
  EXPECT_NE(budget.room().gate.find("100 MiB"), std::string::npos);
}

}  // namespace
}  // namespace ridge
