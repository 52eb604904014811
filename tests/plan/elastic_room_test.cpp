// Which pins a plan lets go under memory pressure, and what room for that costs.
#include "plan/elastic_room.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/units.h"
#include "plan/fit.h"
#include "tests/plan/layered.h"

namespace ridge {
namespace {

Program layered(uint64_t slot) {
  return test::layered({.layers = 100, .rows = 512, .cols = 1024, .type = Type::Q4_0}, slot);  // 288 KiB each
}

PlanInput input(std::optional<uint64_t> budget, LiveRoom live) {
  PlanInput in;
  in.budget = budget;
  in.program = layered;
  in.fixed = [](const Program&, uint32_t) {
    Account a;
    a.add("fixed", kMiB);
    return a;
  };
  in.batches = {4};
  in.live = live;
  return in;
}

uint64_t item(const Plan& plan, std::string_view end) {
  for (const AccountItem& i : plan.account.items()) {
    if (i.name.ends_with(end)) return i.bytes;
  }
  return 0;
}

TEST(ElasticRoom, CostsNoSlotsWhereSomethingStreams) {
  for (uint64_t budget : {10 * kMiB, 20 * kMiB, 30 * kMiB}) {
    EXPECT_TRUE(make_plan(input(budget, LiveRoom::none)).value().placement.elastic.empty());
    const Plan live = make_plan(input(budget, LiveRoom::where_free)).value();
    ASSERT_TRUE(live.placement.streams());
    EXPECT_EQ(live.placement.slot_bytes, slot_room(live.program, live.placement.pinned, SlotKind::in_order));
    Placement plain = live.placement;
    plain.elastic.clear();
    const SourceMemory with = StreamingSource::memory(live.program, live.placement, {}, false);
    const SourceMemory without = StreamingSource::memory(live.program, plain, {}, false);
    EXPECT_EQ(with.slots, without.slots);
    EXPECT_EQ(with.pins, without.pins);
    for (BlockId b = 0; b < live.program.blocks.size(); ++b) {
      EXPECT_EQ(live.placement.may_go(b), live.placement.pinned[b] != 0) << "all blocks are of one size";
    }
    EXPECT_LE(live.account.total(), budget);
  }
}

TEST(ElasticRoom, AResidentPlanReservesSlotsOnlyWhenAsked) {
  const Plan plain = make_plan(input(std::nullopt, LiveRoom::where_free)).value();
  EXPECT_TRUE(plain.placement.elastic.empty());
  EXPECT_EQ(item(plain, "stream slots"), 0u);
  const Plan live = make_plan(input(std::nullopt, LiveRoom::always)).value();
  EXPECT_FALSE(live.placement.streams());
  EXPECT_GT(item(live, "stream slots"), 0u);
  EXPECT_EQ(std::count(live.placement.elastic.begin(), live.placement.elastic.end(), 1),
            static_cast<ptrdiff_t>(live.program.blocks.size()));
  auto says = [](const Plan& plan, std::string_view words) {
    return std::any_of(plan.reasons.begin(), plan.reasons.end(),
                       [&](const std::string& r) { return r.find(words) != std::string::npos; });
  };
  EXPECT_TRUE(says(plain, "--floor SIZE reserves some"));
  EXPECT_TRUE(says(live, "are reserved for them to stream through"));
}

TEST(ElasticRoom, TheBudgetHoldsFromTheSmallestToResident) {
  const uint64_t least = smallest_account(input(1, LiveRoom::always)).total();
  const uint64_t most = make_plan(input(std::nullopt, LiveRoom::always)).value().account.total();
  for (LiveRoom live : {LiveRoom::where_free, LiveRoom::always}) {
    for (uint64_t budget = least; budget < most + kMiB; budget += 517 * kKiB) {
      auto plan = make_plan(input(budget, live));
      ASSERT_TRUE(plan.ok()) << plan.error().message;
      EXPECT_LE(plan.value().account.total(), budget);
    }
  }
}

TEST(ElasticRoom, ExpertsAndGatheredTensorsStay) {
  Program p = layered(0);
  p.blocks[3].on_demand = true;
  const TensorId gathered[] = {5};
  Placement placement{.pinned = std::vector<uint8_t>(p.blocks.size(), 1)};
  ElasticRoom(p, gathered, LiveRoom::always).grant(placement);
  EXPECT_GT(placement.slot_bytes, 0u);
  for (BlockId b = 0; b < p.blocks.size(); ++b) EXPECT_EQ(placement.may_go(b), b != 3 && b != 5) << b;
}

TEST(ElasticRoom, WhatDoesNotFitTheSlotsStays) {
  Program p = layered(0);
  Placement placement{.pinned = std::vector<uint8_t>(p.blocks.size(), 1), .slot_bytes = 64 * kKiB};
  placement.pinned[0] = 0;
  ElasticRoom(p, {}, LiveRoom::where_free).grant(placement);
  EXPECT_TRUE(placement.elastic.empty());
  EXPECT_EQ(placement.slot_bytes, 64 * kKiB);
}

}  // namespace
}  // namespace ridge
