// The planner on made-up programs: what is pinned, what it costs, and when it refuses.
#include "plan/planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "base/units.h"
#include "plan/expert_plan.h"
#include "tests/plan/layered.h"

namespace ridge {
namespace {

// A pass over `layers` matrices of 64 × 256 Q4_0 (9 KiB each), cut to the slot.
Program layered(uint32_t layers, uint64_t slot) {
  return test::layered({.layers = layers, .rows = 64, .cols = 256, .type = Type::Q4_0}, slot);
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

// Where more slots fit than the two that are needed, they take memory from pins: more is read then, in less time.
TEST(Planner, MoreMemoryIsNeverSlower) {
  const uint64_t least = smallest_account(input(200, 1)).total();
  double before = 1e9;
  for (uint64_t budget = least; budget < least + 3 * kMiB; budget += 250 * kKiB) {
    auto plan = make_plan(input(200, budget));
    ASSERT_TRUE(plan.ok());
    EXPECT_LE(plan.value().decode.seconds, before) << budget - least;
    before = plan.value().decode.seconds;
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

TEST(Planner, NamedBudgetsAreWholeMebibytesAboveWhatIsNeeded) {
  for (uint64_t least :
       {uint64_t{1}, kMiB - 1, 37 * kMiB - 300 * kKiB, 37 * kMiB - 200 * kKiB, 37 * kMiB, 1500 * kMiB + 1}) {
    const uint64_t named = named_budget(least);
    EXPECT_EQ(named % kMiB, 0u) << least;
    EXPECT_GE(named, least + 256 * kKiB) << least;
    EXPECT_LE(named, least + 256 * kKiB + kMiB) << least;
    auto typed = parse_bytes(budget_text(named));
    ASSERT_TRUE(typed.ok());
    EXPECT_EQ(typed.value(), named);
  }
  EXPECT_EQ(budget_text(named_budget(37 * kMiB - 300 * kKiB)), "37M");
  EXPECT_EQ(budget_text(named_budget(1500 * kMiB)), "1501M");  // never "1.47G", which would be less
}

// Slots of a least size where they fit; a budget that only smaller ones fit into still works.
TEST(Planner, SlotsAreNoSmallerThanAskedWhereTheyFit) {
  PlanInput in = input(40, std::nullopt);
  in.program = [](uint64_t slot) { return test::layered({.layers = 40, .rows = 16384, .cols = 256}, slot); };
  const uint64_t least = smallest_account(in).total();
  in.budget = least + 8 * kMiB;
  const uint64_t chosen = make_plan(in).value().placement.slot_bytes;
  ASSERT_LT(chosen, 2 * kMiB) << "parts of a matrix are best here, so that a least one matters";
  in.least_slot = 2 * kMiB;
  const auto larger = make_plan(in);
  ASSERT_TRUE(larger.ok()) << larger.error().message;
  EXPECT_GT(larger.value().placement.slot_bytes, chosen);
  EXPECT_LE(larger.value().account.total(), *in.budget);
  in.budget = least;
  EXPECT_TRUE(make_plan(in).ok());
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

// To be compared with: the first blocks of the pass, nothing, and what a cache by recency comes to.
TEST(Planner, OtherRulesOfPinning) {
  const uint64_t budget = smallest_account(input(400, 1)).total() + 2 * kMiB;
  auto of = [&](PinRule rule) {
    PlanInput in = input(400, budget);
    in.pins = rule;
    auto plan = make_plan(in);
    EXPECT_TRUE(plan.ok());
    EXPECT_LE(plan.value().account.total(), budget);
    return std::move(plan).value();
  };
  const Plan leading = of(PinRule::leading), none = of(PinRule::none), lru = of(PinRule::lru);
  const std::vector<uint8_t>& pinned = leading.placement.pinned;
  EXPECT_TRUE(std::is_sorted(pinned.begin(), pinned.end(), std::greater<>()));
  EXPECT_GT(std::count(pinned.begin(), pinned.end(), 1), 50);
  EXPECT_GT(std::count(pinned.begin(), pinned.end(), 0), 50);
  EXPECT_GE(leading.decode.seconds, of(PinRule::planned).decode.seconds);
  for (const Plan* plan : {&none, &lru}) EXPECT_EQ(plan->placement.pinned_bytes(plan->program), 0u);
  EXPECT_GE(none.placement.slots, 2u);
  EXPECT_EQ(lru.placement.slots, 1u);
  EXPECT_GT(lru.decode.seconds, none.decode.seconds);  // nothing is read while something is computed
  EXPECT_EQ(pin_rule("lru"), PinRule::lru);
  EXPECT_FALSE(pin_rule("Leading").has_value());
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

// Also where neither reading nor computing limits, but what both ask of the memory together.
TEST(Planner, NothingIsForecastBelowItsBound) {
  for (double memory : {1e7, 1e8, 1e9, 1e10}) {
    for (double storage : {1e7, 1e8, 1e9}) {
      PlanInput in = input(200, smallest_account(input(200, 1)).total() + 500 * kKiB);
      in.rates = {.storage = storage, .memory = memory, .rearrange = 1e10, .block_overhead_s = 0};
      auto plan = make_plan(in);
      ASSERT_TRUE(plan.ok());
      const PassForecast& f = plan.value().decode;
      EXPECT_GE(f.seconds, f.bound.seconds()) << "memory " << memory << ", storage " << storage;
      EXPECT_GE(plan.value().prompt.seconds, plan.value().prompt.bound.seconds());
    }
  }
}

// Of every 65 matrices of layered() 64 are gates and downs of 32 experts, of which a token uses 2.
Program with_experts(uint32_t layers, uint64_t slot) {
  constexpr uint32_t kExperts = 32, kUsed = 2, kSteps = 1 + 2 * kExperts;
  Program p = layered(layers / kSteps * kSteps, slot);
  for (uint32_t s = 0; s < p.steps.size(); ++s) {
    if (s % kSteps == 0) {
      p.expert_groups.push_back({.first_step = s + 1, .experts = kExperts, .used = kUsed});
      continue;
    }
    for (const Slice& slice : p.steps[s]) {
      p.blocks[slice.block].on_demand = true;
      p.visits[slice.block].chance = static_cast<double>(kUsed) / kExperts;
    }
  }
  return p;
}

TEST(Planner, WhatEveryPassNeedsIsPinnedBeforeExperts) {
  Program p = with_experts(650, 0);
  const uint64_t dense = 10 * p.blocks[0].memory_bytes;
  for (uint64_t capacity : {dense / 2, dense, 2 * dense}) {
    std::vector<uint8_t> pinned = spread_pins(p, capacity);
    uint64_t used = 0, experts = 0, others = 0;
    for (BlockId b = 0; b < p.blocks.size(); ++b) {
      if (!pinned[b]) continue;
      used += p.blocks[b].memory_bytes;
      (p.blocks[b].on_demand ? experts : others) += 1;
    }
    EXPECT_LE(used, capacity);
    EXPECT_EQ(others, std::min<uint64_t>(10, capacity / p.blocks[0].memory_bytes));
    EXPECT_EQ(experts > 0, capacity > dense);
  }
}

TEST(Planner, ExpertsCountByTheirChance) {
  Program p = with_experts(650, 0);
  Placement none{.pinned = std::vector<uint8_t>(p.blocks.size(), 0)};
  // 10 layers: a block of every pass, and 2 of 32 experts of two blocks.
  EXPECT_EQ(none.streamed_bytes(p), 10 * 5 * p.blocks[0].storage_bytes);
  EXPECT_EQ(p.memory_bytes_of_a_pass(), 10 * 5 * p.blocks[0].memory_bytes);
  EXPECT_EQ(p.memory_bytes(), 650 * p.blocks[0].memory_bytes);
  Rates rates{.storage = 1e6, .memory = 1e9, .rearrange = 1e9};
  EXPECT_DOUBLE_EQ(bound_of(p, none, rates).storage_s, static_cast<double>(none.streamed_bytes(p)) / 1e6);
  EXPECT_DOUBLE_EQ(chance_of({.block = 0, .cost = {}, .chance = 0.25}, 2), 1 - 0.75 * 0.75);
}

TEST(Planner, BudgetsHoldWithExpertsToo) {
  PlanInput in = input(650, 1);
  in.program = [](uint64_t slot) { return with_experts(650, slot); };
  uint64_t least = smallest_account(in).total();
  bool passing = false, cached = false, pinned = false;
  for (uint64_t budget = least; budget < least + 7 * kMiB; budget += 97 * kKiB) {
    in.budget = budget;
    auto plan = make_plan(in);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    EXPECT_LE(plan.value().account.total(), budget);
    const Placement& p = plan.value().placement;
    const ExpertDemand demand = expert_demand(plan.value().program);
    EXPECT_LE(p.expert_cache * demand.layers + 2, p.expert_slots);
    passing |= p.expert_cache == 0 && p.expert_slots > 2;
    EXPECT_TRUE(p.expert_cache == 0 || p.expert_cache >= demand.per_token);
    cached |= p.expert_cache > 0;
    for (BlockId b = 0; b < p.pinned.size(); ++b) pinned |= p.pinned[b] && plan.value().program.blocks[b].on_demand;
    // No cache before every pass's own blocks are pinned.
    for (BlockId b = 0; b < p.pinned.size() && p.expert_cache > 0; ++b) {
      EXPECT_TRUE(p.pinned[b] || plan.value().program.blocks[b].on_demand);
    }
  }
  // The sweep meets every way to use the memory.
  EXPECT_TRUE(passing);
  EXPECT_TRUE(cached);
  EXPECT_TRUE(pinned);
}

TEST(Planner, SaysWhenACacheOfExpertsIsTooSmall) {
  PlanInput in = input(650, 1);
  in.program = [](uint64_t slot) { return with_experts(650, slot); };
  const uint64_t least = smallest_account(in).total();
  int said = 0, silent = 0;
  auto says = [](const Plan& plan, const char* word) {
    return std::any_of(plan.reasons.begin(), plan.reasons.end(),
                       [&](const std::string& r) { return r.find(word) != std::string::npos; });
  };
  for (uint64_t budget = least; budget < least + 7 * kMiB; budget += 97 * kKiB) {
    in.budget = budget;
    auto plan = make_plan(in);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    const Placement& p = plan.value().placement;
    const bool too_small = p.streams() && plan.value().expert_room < expert_demand(plan.value().program).per_token;
    EXPECT_EQ(says(plan.value(), "bypass"), too_small) << budget;
    EXPECT_TRUE(p.expert_cache == 0 || !too_small);
    said += too_small ? 1 : 0;
    silent += too_small ? 0 : 1;
  }
  EXPECT_GT(said, 3);
  EXPECT_GT(silent, 3);
}

}  // namespace
}  // namespace ridge
