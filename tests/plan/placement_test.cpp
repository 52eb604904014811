// Where pins lie: the model of a pass against arithmetic by hand, and placements against the bound.
#include "plan/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "plan/knapsack.h"

namespace ridge {
namespace {

// A program of blocks without pieces; rates at which a byte takes a second to read, and computing is given by bytes of
// memory.
struct Made {
  Program program;
  Rates rates{.storage = 1, .memory = 1, .rearrange = 1, .block_overhead_s = 0};
};

Made made(const std::vector<std::pair<uint64_t, uint64_t>>& compute_and_read) {
  Made m;
  for (auto [compute, read] : compute_and_read) {
    Block b;
    b.memory_bytes = compute;
    b.storage_bytes = read;
    m.program.visits.push_back({.block = static_cast<BlockId>(m.program.blocks.size()), .cost = {}});
    m.program.blocks.push_back(b);
  }
  return m;
}

// facts: N equal blocks, computing 1, reading `ratio`; scaled so that bytes are whole numbers.
Made equal_blocks(size_t n, double ratio) {
  return made(std::vector<std::pair<uint64_t, uint64_t>>(n, {10, static_cast<uint64_t>(10 * ratio)}));
}

std::vector<uint8_t> leading(size_t n, size_t pins) {
  std::vector<uint8_t> pinned(n, 0);
  std::fill_n(pinned.begin(), pins, uint8_t{1});
  return pinned;
}

double floor_of(const PassModel& model, const std::vector<uint8_t>& pinned) {
  return std::max(model.compute_seconds({.pinned = pinned}), model.read_seconds({.pinned = pinned}));
}

TEST(PassModel, WithoutPinsTheSlowerOfReadingAndComputingSetsThePace) {
  for (double ratio : {0.5, 1.0, 3.0}) {
    Made m = equal_blocks(10, ratio);
    const PassModel model(m.program, m.rates, 1);
    const std::vector<uint8_t> none(10, 0), all(10, 1);
    EXPECT_NEAR(model.seconds({.pinned = none}), 100 * std::max(1.0, ratio), 1e-6);
    EXPECT_NEAR(model.seconds({.pinned = all}), 100, 1e-6);
    // One slot: reading and computing in turn.
    EXPECT_NEAR(model.seconds({.pinned = none, .slots = 1}), 100 * (1 + ratio), 1e-6);
  }
}

TEST(PassModel, TwoBlocksInTwoSlotsStay) {
  Made m = equal_blocks(10, 5);
  const PassModel model(m.program, m.rates, 1);
  EXPECT_NEAR(model.seconds({.pinned = leading(10, 8)}), 100, 1e-6);
  EXPECT_EQ(model.bound({.pinned = leading(10, 8)}).storage_s, 0);
  EXPECT_GT(model.seconds({.pinned = leading(10, 7)}), 100);
}

// The published table of N = 84 (docs/planning.md): pinned leading blocks miss the bound where spread ones reach it.
TEST(PassModel, LeadingPinsWaitAsThePipelineSays) {
  struct Row {
    double ratio;
    size_t pins;
    double leading, bound;
  };
  for (const Row& row : {Row{1.5, 40, 105, 84}, Row{2, 58, 108, 84}, Row{4, 40, 210, 176}}) {
    Made m = equal_blocks(84, row.ratio);
    const PassModel model(m.program, m.rates, 1);
    EXPECT_NEAR(model.seconds({.pinned = leading(84, row.pins)}) / 10, row.leading, 3) << row.ratio;
    const PassModels models{.decode = &model};
    const PinChoice choice = choose_pins(m.program, models, row.pins * 64);
    EXPECT_NEAR(model.seconds({.pinned = choice.pinned}) / 10, row.bound, 1e-6) << row.ratio;
  }
}

TEST(PassModel, ExpertsWaitForTheirLayerAlone) {
  Made m = equal_blocks(4, 3);  // 1 and 2 are experts of a layer, each of half a chance
  for (BlockId b : {1u, 2u}) {
    m.program.blocks[b].on_demand = true;
    m.program.visits[b].chance = 0.5;
  }
  const PassModel model(m.program, m.rates, 1);
  const std::vector<uint8_t> dense = {1, 0, 0, 1}, all(4, 1);
  EXPECT_NEAR(model.seconds({.pinned = all}), 30, 1e-6);
  // 30 of reading beside 10 of computing.
  EXPECT_NEAR(model.seconds({.pinned = dense}), 10 + 30 + 10, 1e-6);
  EXPECT_NEAR(model.seconds({.pinned = dense, .expert_hits = 0.5}), 10 + 15 + 10, 1e-6);
  // Two tokens choose three quarters of them.
  EXPECT_NEAR(PassModel(m.program, m.rates, 2).read_seconds({.pinned = dense}), 45, 1e-6);
}

// Layers of three kinds of blocks that differ in size and in how long they are computed on, and a head.
Made uneven(uint32_t seed, size_t layers) {
  std::mt19937 random(seed);
  std::vector<std::pair<uint64_t, uint64_t>> kinds;
  for (int k = 0; k < 3; ++k) kinds.push_back({1280 + 64 * (random() % 16), 1280 + 64 * (random() % 16)});
  std::vector<std::pair<uint64_t, uint64_t>> blocks;
  for (size_t l = 0; l < layers; ++l) blocks.insert(blocks.end(), kinds.begin(), kinds.end());
  for (int h = 0; h < 6; ++h) blocks.push_back({1600, 1920});
  return made(blocks);
}

// No pins of this many bytes make a pass faster, wherever they lie: all computing, and what the best knapsack leaves to
// read.
double floor_of_all(const Made& m, const PassModel& model, uint64_t capacity) {
  std::vector<KnapsackItem> items;
  double read = 0;
  for (const VisitTime& v : model.visits()) {
    items.push_back({.value = v.read, .bytes = m.program.blocks[v.block].memory_bytes});
    read += v.read;
  }
  const std::vector<uint8_t> all(m.program.blocks.size(), 1);
  return std::max(model.compute_seconds({.pinned = all}), read - solve_knapsack(items, capacity).upper_bound);
}

TEST(Placement, SpreadPinsReachTheBound) {
  double worst = 1;
  for (uint32_t seed = 0; seed < 40; ++seed) {
    Made m = uneven(seed, 24);
    // Storage from a third to three times as fast as computing.
    m.rates.storage = std::vector<double>{0.33, 0.7, 1, 1.5, 3}[seed % 5];
    const PassModel model(m.program, m.rates, 1);
    const PassModels models{.decode = &model};
    for (double share : {0.2, 0.5, 0.8}) {
      const auto capacity = static_cast<uint64_t>(share * static_cast<double>(m.program.memory_bytes()));
      const PinChoice c = choose_pins(m.program, models, capacity);
      Placement placement{.pinned = c.pinned};
      EXPECT_LE(placement.pinned_bytes(m.program), capacity);
      EXPECT_GE(c.seconds, floor_of(model, c.pinned) * (1 - 1e-9));
      worst = std::max(worst, c.seconds / floor_of_all(m, model, capacity));
      // Never worse than the same bytes in front.
      std::vector<uint8_t> front(c.pinned.size(), 0);
      uint64_t used = 0;
      for (BlockId b = 0; b < front.size() && used + m.program.blocks[b].memory_bytes <= capacity; ++b) {
        front[b] = 1;
        used += m.program.blocks[b].memory_bytes;
      }
      EXPECT_LE(c.seconds, model.seconds({.pinned = front}) * (1 + 1e-9));
    }
  }
  EXPECT_LT(worst, 1.09);
}

TEST(Placement, IsNearTheBestOfAllPlacements) {
  double worst = 1, sum = 0;
  constexpr int kPrograms = 60;
  for (uint32_t seed = 0; seed < kPrograms; ++seed) {
    std::mt19937 random(seed);
    std::vector<std::pair<uint64_t, uint64_t>> blocks;
    for (int b = 0; b < 11; ++b) blocks.push_back({64 * (1 + random() % 3), 64 * (1 + random() % 3)});
    Made m = made(blocks);
    m.rates.storage = 0.3 + 0.1 * (seed % 20);
    const PassModel model(m.program, m.rates, 1);
    const uint64_t capacity = m.program.memory_bytes() * (1 + seed % 3) / 4;
    double best = INFINITY;
    for (uint32_t set = 0; set < (1u << blocks.size()); ++set) {
      std::vector<uint8_t> pinned(blocks.size());
      for (size_t b = 0; b < blocks.size(); ++b) pinned[b] = set >> b & 1;
      if (Placement{.pinned = pinned}.pinned_bytes(m.program) > capacity) continue;
      best = std::min(best, model.seconds({.pinned = pinned}));
    }
    const double got = choose_pins(m.program, {.decode = &model}, capacity).seconds;
    EXPECT_GE(got, best * (1 - 1e-9));
    worst = std::max(worst, got / best);
    sum += got / best;
  }
  EXPECT_LT(sum / kPrograms, 1.02);
  EXPECT_LT(worst, 1.12);
}

TEST(Placement, PinsSaveTheMostPerByte) {
  // The last two kinds cost a long read for few bytes of memory.
  std::vector<std::pair<uint64_t, uint64_t>> blocks;
  for (int l = 0; l < 10; ++l) blocks.insert(blocks.end(), {{640, 640}, {640, 6400}});
  Made m = made(blocks);
  const PassModel model(m.program, m.rates, 1);
  const PinChoice c = choose_pins(m.program, {.decode = &model}, 10 * 640);
  EXPECT_TRUE(c.exact);
  for (BlockId b = 0; b < 20; ++b) EXPECT_EQ(c.pinned[b], b % 2) << b;
}

TEST(Placement, TheSameInputGivesTheSamePins) {
  Made m = uneven(7, 60);
  m.rates.storage = 0.6;
  const PassModel model(m.program, m.rates, 1);
  const PinChoice first = choose_pins(m.program, {.decode = &model}, m.program.memory_bytes() / 3);
  EXPECT_EQ(choose_pins(m.program, {.decode = &model}, m.program.memory_bytes() / 3).pinned, first.pinned);
}

}  // namespace
}  // namespace ridge
