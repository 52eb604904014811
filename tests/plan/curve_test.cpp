// Speed over the budget: it never falls, its ends are the smallest budget and that of a resident model, and the useful
// budget is what its definition says.
#include "plan/curve.h"

#include <gtest/gtest.h>

#include "base/units.h"

namespace ridge {
namespace {

// `layers` matrices of 64 × 1024 Q8_0 (68 KiB), each one block.
PlanInput input(uint32_t layers, double storage) {
  PlanInput in;
  in.program = [layers](uint64_t) {
    Program p;
    p.files = {"model"};
    for (uint32_t l = 0; l < layers; ++l) {
      p.tensors.push_back({.name = "t", .type = Type::Q8_0, .rows = 64, .cols = 1024, .offset = l * 69632ull});
      Block b{.name = "b", .pieces = {{l, 0, 64}}};
      b.storage_bytes = b.memory_bytes = p.tensors[l].stored_bytes(0, 64);
      p.visits.push_back({.block = l, .cost = {.int_ops = 2 * 64 * 1024}});
      p.blocks.push_back(b);
      p.steps.push_back({{l, 0, 1}});
    }
    return p;
  };
  in.fixed = [](const Program&, uint32_t batch) {
    Account a;
    a.add("fixed", kMiB + batch * kKiB);
    return a;
  };
  in.batches = {8, 1};
  in.rates = {.storage = storage, .memory = 10e9, .rearrange = 1e15, .block_overhead_s = 1e-6};
  return in;
}

TEST(Curve, NeverFalls) {
  for (double storage : {0.5e9, 5e9, 30e9}) {
    auto curve = budget_curve(input(100, storage));
    ASSERT_TRUE(curve.ok()) << curve.error().message;
    const BudgetCurve& c = curve.value();
    ASSERT_EQ(c.points.size(), 24u);
    EXPECT_EQ(c.points.front().budget, c.smallest);
    EXPECT_EQ(c.points.back().budget, c.resident);
    EXPECT_EQ(c.points.back().streamed_bytes, 0u);
    for (size_t i = 1; i < c.points.size(); ++i) {
      EXPECT_GT(c.points[i].budget, c.points[i - 1].budget);
      EXPECT_GE(c.points[i].tokens_per_s, c.points[i - 1].tokens_per_s);
    }
    EXPECT_GE(c.useful, c.smallest);
    EXPECT_LE(c.useful, c.resident);
  }
}

TEST(Curve, SlowStorageNeedsEverythingFastStorageDoesNot) {
  PlanInput hidden = input(100, 5e9);
  // Cores that take twice as long as memory: what is read in and computed on does not ask too much of it.
  hidden.rates.int8_ops = 2 * 64 * 1024 / (2 * 69632 / hidden.rates.memory);
  auto slow = budget_curve(input(100, 0.5e9)), fast = budget_curve(std::move(hidden));
  ASSERT_TRUE(slow.ok() && fast.ok());
  // 1/(W - P) rises ever faster up to the last byte.
  EXPECT_GE(slow.value().useful, slow.value().resident * 99 / 100);
  // Reads hide behind computing long before everything is pinned.
  EXPECT_LT(fast.value().useful, fast.value().resident * 3 / 4);
  EXPECT_LT(fast.value().after_useful, 0.1 * fast.value().before_useful);
}

TEST(Curve, BelowTheSmallestBudgetNothingFits) {
  PlanInput in = input(100, 1e9);
  auto curve = budget_curve(in);
  ASSERT_TRUE(curve.ok());
  in.budget = curve.value().smallest;
  EXPECT_TRUE(make_plan(in).ok());
  in.budget = curve.value().smallest - 1;
  EXPECT_FALSE(make_plan(in).ok());
}

}  // namespace
}  // namespace ridge
