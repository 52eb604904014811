// The planner on made-up programs: what is pinned, what it costs, and when it refuses.
#include "plan/planner.h"

#include <gtest/gtest.h>

#include "base/units.h"

namespace ridge {
namespace {

// A pass over `layers` matrices of 64 × 256 Q4_0 (9 KiB each), cut to the slot.
Program layered(uint32_t layers, uint64_t slot) {
  Program p;
  p.files = {"model"};
  for (uint32_t l = 0; l < layers; ++l) {
    p.tensors.push_back({.name = "t", .type = Type::Q4_0, .rows = 64, .cols = 256, .offset = l * 9216});
    uint32_t step = slot == 0 ? 64 : std::max<uint32_t>(16, static_cast<uint32_t>(slot / 144) / 16 * 16);
    std::vector<Slice> slices;
    for (uint32_t row = 0; row < 64; row += step) {
      uint32_t end = std::min(64u, row + step);
      Block b{.name = "b", .pieces = {{l, row, end}}};
      b.storage_bytes = p.tensors[l].stored_bytes(row, end);
      b.memory_bytes = b.storage_bytes;
      slices.push_back({static_cast<BlockId>(p.blocks.size()), 0, 1});
      p.visits.push_back({static_cast<BlockId>(p.blocks.size()), {}});
      p.blocks.push_back(b);
    }
    p.steps.push_back(slices);
  }
  return p;
}

PlanInput input(uint32_t layers, std::optional<uint64_t> budget) {
  PlanInput in;
  in.budget = budget;
  in.program = [layers](uint64_t slot) { return layered(layers, slot); };
  in.fixed = [](const Program&, uint32_t batch) {
    Account a;
    a.add("fixed", 100 * kKiB + batch * kKiB);
    return a;
  };
  in.batches = {16, 4, 1};
  return in;
}

TEST(Planner, EverythingIsPinnedWithoutABudget) {
  auto plan = make_plan(input(8, std::nullopt));
  ASSERT_TRUE(plan.ok());
  EXPECT_FALSE(plan.value().placement.streams());
  EXPECT_EQ(plan.value().batch, 16u);
  EXPECT_EQ(plan.value().placement.streamed_bytes(plan.value().program), 0u);
}

TEST(Planner, TheAccountNeverExceedsTheBudget) {
  uint64_t least = smallest_account(input(200, 1)).total();
  for (uint64_t budget = least; budget < least + 3 * kMiB; budget += 37 * kKiB) {
    auto plan = make_plan(input(200, budget));
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    EXPECT_LE(plan.value().account.total(), budget);
  }
}

TEST(Planner, MoreMemoryNeverMeansMoreReading) {
  uint64_t least = smallest_account(input(200, 1)).total(), before = UINT64_MAX;
  for (uint64_t budget = least; budget < least + 3 * kMiB; budget += 250 * kKiB) {
    auto plan = make_plan(input(200, budget));
    ASSERT_TRUE(plan.ok());
    uint64_t streamed = plan.value().placement.streamed_bytes(plan.value().program);
    EXPECT_LE(streamed, before);
    before = streamed;
  }
}

TEST(Planner, BelowTheSmallestBudgetItRefusesAndNamesIt) {
  uint64_t least = smallest_account(input(50, 1)).total();
  EXPECT_TRUE(make_plan(input(50, least)).ok());
  auto refused = make_plan(input(50, least - 1));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::does_not_fit);
  // The table sums to the least, and the figure to give holds.
  EXPECT_NE(refused.error().message.find(format_bytes(least)), std::string::npos) << refused.error().message;
  uint64_t named = 0;
  size_t at = refused.error().message.find("give --memory ");
  ASSERT_NE(at, std::string::npos) << refused.error().message;
  named = std::stoull(refused.error().message.substr(at + 14)) * kMiB;
  EXPECT_GT(named, least);
  EXPECT_LT(named, least + 2 * kMiB);
}

TEST(Planner, PinsAreSpreadEvenly) {
  Program p = layered(90, 0);
  std::vector<uint8_t> pinned = spread_pins(p, p.memory_bytes() / 3);
  // No run of streamed blocks is longer than the share demands, plus one.
  int run = 0, longest = 0, count = 0;
  for (uint8_t pin : pinned) {
    run = pin ? 0 : run + 1;
    longest = std::max(longest, run);
    count += pin;
  }
  EXPECT_EQ(count, 30);
  EXPECT_LE(longest, 3);
}

TEST(Planner, PinsStayWithinTheirCapacity) {
  Program p = layered(33, 0);
  for (uint64_t capacity : {uint64_t{0}, uint64_t{1}, uint64_t{9216}, uint64_t{100000}, p.memory_bytes()}) {
    Placement placement{.pinned = spread_pins(p, capacity)};
    EXPECT_LE(placement.pinned_bytes(p), capacity);
  }
  EXPECT_FALSE((Placement{.pinned = spread_pins(p, p.memory_bytes())}).streams());
}

TEST(Planner, TheBoundIsTheSlowestOfItsParts) {
  Program p = layered(10, 0);
  Placement none{.pinned = std::vector<uint8_t>(p.blocks.size(), 0)};
  Rates rates{.storage = 1e6, .memory = 1e9, .rearrange = 1e9};
  Bound b = bound_of(p, none, rates);
  EXPECT_DOUBLE_EQ(b.seconds(), static_cast<double>(p.storage_bytes()) / 1e6);
  Placement all{.pinned = std::vector<uint8_t>(p.blocks.size(), 1)};
  EXPECT_DOUBLE_EQ(bound_of(p, all, rates).storage_s, 0);
}

// Of every 5 blocks of layered() 4 become experts of which a token uses one.
Program with_experts(uint32_t layers, uint64_t slot) {
  Program p = layered(layers, slot);
  for (Visit& v : p.visits) {
    if (v.block % 5 == 0) continue;
    p.blocks[v.block].on_demand = true;
    v.chance = 0.25;
  }
  p.expert_groups.push_back({.first_step = 0, .experts = 4, .used = 1});
  return p;
}

TEST(Planner, WhatEveryPassNeedsIsPinnedBeforeExperts) {
  Program p = with_experts(100, 0);
  const uint64_t dense = 20 * p.blocks[0].memory_bytes;
  for (uint64_t capacity : {dense / 2, dense, 2 * dense}) {
    std::vector<uint8_t> pinned = spread_pins(p, capacity);
    uint64_t used = 0, experts = 0, others = 0;
    for (BlockId b = 0; b < p.blocks.size(); ++b) {
      if (!pinned[b]) continue;
      used += p.blocks[b].memory_bytes;
      (p.blocks[b].on_demand ? experts : others) += 1;
    }
    EXPECT_LE(used, capacity);
    EXPECT_EQ(others, std::min<uint64_t>(20, capacity / p.blocks[0].memory_bytes));
    EXPECT_EQ(experts > 0, capacity > dense);
  }
}

TEST(Planner, ExpertsCountByTheirChance) {
  Program p = with_experts(100, 0);
  Placement none{.pinned = std::vector<uint8_t>(p.blocks.size(), 0)};
  EXPECT_EQ(none.streamed_bytes(p), 40 * p.blocks[0].storage_bytes);
  EXPECT_EQ(p.memory_bytes_of_a_pass(), 40 * p.blocks[0].memory_bytes);
  EXPECT_EQ(p.memory_bytes(), 100 * p.blocks[0].memory_bytes);
  Rates rates{.storage = 1e6, .memory = 1e9, .rearrange = 1e9};
  EXPECT_DOUBLE_EQ(bound_of(p, none, rates).storage_s, static_cast<double>(none.streamed_bytes(p)) / 1e6);
}

TEST(Planner, BudgetsHoldWithExpertsToo) {
  PlanInput in = input(200, 1);
  in.program = [](uint64_t slot) { return with_experts(200, slot); };
  uint64_t least = smallest_account(in).total();
  for (uint64_t budget = least; budget < least + 3 * kMiB; budget += 137 * kKiB) {
    in.budget = budget;
    auto plan = make_plan(in);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    EXPECT_LE(plan.value().account.total(), budget);
  }
}

}  // namespace
}  // namespace ridge
