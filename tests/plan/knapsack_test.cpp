// The knapsack against trying everything, and its proof where that is not possible.
#include "plan/knapsack.h"

#include <gtest/gtest.h>

#include <random>

namespace ridge {
namespace {

double best_by_trying(const std::vector<KnapsackItem>& items, uint64_t capacity) {
  double best = 0;
  for (uint32_t set = 0; set < (1u << items.size()); ++set) {
    uint64_t bytes = 0;
    double value = 0;
    for (size_t i = 0; i < items.size(); ++i) {
      if ((set >> i & 1) == 0) continue;
      bytes += items[i].bytes;
      value += items[i].value;
    }
    if (bytes <= capacity) best = std::max(best, value);
  }
  return best;
}

// What the result says of itself is true.
void expect_consistent(const std::vector<KnapsackItem>& items, uint64_t capacity, const KnapsackResult& r) {
  ASSERT_EQ(r.taken.size(), items.size());
  uint64_t bytes = 0;
  double value = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    if (r.taken[i] == 0) continue;
    bytes += items[i].bytes;
    value += items[i].value;
  }
  EXPECT_LE(bytes, capacity);
  EXPECT_EQ(bytes, r.bytes);
  EXPECT_NEAR(value, r.value, 1e-9 * (1 + value));
  EXPECT_GE(r.upper_bound, r.value);
}

TEST(Knapsack, EqualsTryingEverything) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 300; ++trial) {
    // Few sizes and values make items that are alike; many make none.
    const uint64_t sizes = 1 + random() % 40, values = 1 + random() % 40;
    std::vector<KnapsackItem> items(random() % 14);
    uint64_t total = 0;
    for (KnapsackItem& i : items) {
      i = {.value = static_cast<double>(random() % values) / 7, .bytes = random() % sizes};
      total += i.bytes;
    }
    const uint64_t capacity = random() % (total + 2);
    KnapsackResult r = solve_knapsack(items, capacity);
    expect_consistent(items, capacity, r);
    EXPECT_TRUE(r.exact);
    EXPECT_EQ(r.gap(), 0);
    EXPECT_NEAR(r.value, best_by_trying(items, capacity), 1e-9);
  }
}

TEST(Knapsack, GreedyMissesWhatTheSearchFinds) {
  // By value per byte the first is taken, and neither of the others fits beside it.
  std::vector<KnapsackItem> items = {{.value = 61, .bytes = 6}, {.value = 50, .bytes = 5}, {.value = 50, .bytes = 5}};
  KnapsackResult r = solve_knapsack(items, 10);
  EXPECT_EQ(r.taken, (std::vector<uint8_t>{0, 1, 1}));
  EXPECT_EQ(r.value, 100);
  KnapsackResult greedy = solve_knapsack(items, 10, {.most_steps = 0});
  EXPECT_EQ(greedy.value, 61);
  EXPECT_FALSE(greedy.exact);
  EXPECT_EQ(greedy.upper_bound, 61 + 4 * 10.0);
}

TEST(Knapsack, NothingAndEverything) {
  std::vector<KnapsackItem> items = {
      {.value = 1, .bytes = 10}, {.value = 0, .bytes = 1}, {.value = 2, .bytes = 0}, {.value = -1, .bytes = 0}};
  EXPECT_EQ(solve_knapsack(items, 0).taken, (std::vector<uint8_t>{0, 0, 1, 0}));
  EXPECT_EQ(solve_knapsack(items, UINT64_MAX).taken, (std::vector<uint8_t>{1, 0, 1, 0}));
  EXPECT_TRUE(solve_knapsack({}, 100).exact);
  EXPECT_EQ(solve_knapsack({}, 100).value, 0);
}

TEST(Knapsack, TheBlocksOfALargeModelAreSolvedExactly) {
  // 80 layers of four kinds, cut into 25 parts each, and a head: 2,125 blocks of 5 sizes.
  std::vector<KnapsackItem> items;
  for (int layer = 0; layer < 80; ++layer) {
    for (int part = 0; part < 25; ++part) {
      const uint64_t bytes = (part % 4 == 0   ? 7'340'032
                              : part % 4 == 1 ? 9'437'184
                              : part % 4 == 2 ? 5'111'808
                                              : 917'504);
      // Time saved per byte differs by kind: some save an init besides the reading.
      items.push_back({.value = static_cast<double>(bytes) * 1e-9 + (part % 4) * 80e-6, .bytes = bytes});
    }
  }
  for (int part = 0; part < 125; ++part) items.push_back({.value = 4e-3, .bytes = 4'194'304});
  KnapsackResult r = solve_knapsack(items, uint64_t{5'000'000'000});
  expect_consistent(items, uint64_t{5'000'000'000}, r);
  EXPECT_LT(r.gap(), 1e-5);
}

TEST(Knapsack, StoppedEarlyItProvesItsGap) {
  std::mt19937 random(3);
  std::vector<KnapsackItem> items(24);
  uint64_t total = 0;
  for (KnapsackItem& i : items) {
    i.bytes = 1'000 + random() % 1'000'000;
    i.value = static_cast<double>(i.bytes) * (1 + static_cast<double>(random() % 1000) * 1e-3);
    total += i.bytes;
  }
  KnapsackResult best = solve_knapsack(items, total / 3, {.most_steps = UINT64_MAX});
  ASSERT_TRUE(best.exact);
  for (uint64_t steps : {0, 3, 20, 100}) {
    KnapsackResult r = solve_knapsack(items, total / 3, {.most_steps = steps});
    expect_consistent(items, total / 3, r);
    EXPECT_LE(r.value, best.value * (1 + 1e-12));
    EXPECT_GE(r.upper_bound, best.value * (1 - 1e-12));
  }
}

}  // namespace
}  // namespace ridge
