// The cache by importance: orders so small that what it must keep can be told by hand.
#include "memory/cache_manager.h"

#include <gtest/gtest.h>

#include <cmath>
#include <initializer_list>

namespace ridge::cache_manager_test {
namespace {

struct ManagedCache {
  ImportanceModel model;
  CacheManagerOptions options;
  CacheManager cache{model, options};
  std::vector<uint64_t> bytes = std::vector<uint64_t>(100, 1);
  std::vector<double> reload = std::vector<double>(100, 1);

  // Hits of one pass.
  uint64_t pass(std::initializer_list<uint32_t> blocks) {
    (void)cache.begin_pass();
    uint64_t hits = 0;
    for (uint32_t b : blocks) hits += cache.access({.block = b, .bytes = bytes[b], .reload = reload[b]}).hit;
    return hits;
  }
};

ManagedCache untrained(uint64_t capacity) {
  return {.model = ImportanceModel::untrained(), .options = {.capacity = capacity}};
}

// Blocks 0, 1, … have their turns in this order, and are used in half of all passes.
ImportanceModel halves(uint32_t blocks) {
  ImportanceModel m = ImportanceModel::untrained();
  for (uint32_t b = 0; b < blocks; ++b) {
    m.frequency.push_back(0.5f);
    m.position.push_back((static_cast<float>(b) + 0.5f) / static_cast<float>(blocks));
    m.early_log_odds.push_back(-5);
    m.late_log_odds.push_back(-5);
    m.late_from.push_back(0);
    m.lately_log_odds.push_back(0);
  }
  m.same_pass.resize(blocks);
  m.next_pass.resize(blocks);
  m.lately.resize(blocks);
  return m;
}

TEST(CacheManager, ACyclicOrderHitsTheShareThatFits) {
  for (uint64_t capacity : {1u, 4u, 5u}) {
    ManagedCache c = untrained(capacity);
    EXPECT_EQ(c.pass({0, 1, 2, 3, 4}), 0u);
    for (int pass = 0; pass < 20; ++pass) EXPECT_EQ(c.pass({0, 1, 2, 3, 4}), capacity) << pass;
  }
}

// LRU would drop block 0 for each passer-by and never hit.
TEST(CacheManager, WhatPassesByDoesNotPushOutWhatIsUsedAlways) {
  ManagedCache c = untrained(1);
  (void)c.pass({0});
  for (uint32_t passer = 1; passer < 50; ++passer) EXPECT_EQ(c.pass({0, passer}), 1u) << passer;
}

TEST(CacheManager, WhatIsUsedNoMoreMakesRoom) {
  ManagedCache c = untrained(1);
  for (int pass = 0; pass < 10; ++pass) (void)c.pass({0});
  uint64_t hits = 0;
  for (int pass = 0; pass < 40; ++pass) hits += c.pass({1});
  EXPECT_GT(hits, 20u);
  EXPECT_EQ(c.pass({0}), 0u);
}

TEST(CacheManager, TheDearerReloadStays) {
  ManagedCache c = untrained(1);
  c.reload[1] = 3;
  (void)c.pass({0, 1});
  for (int pass = 0; pass < 10; ++pass) EXPECT_EQ(c.pass({1}), 1u);
  ManagedCache large = untrained(10);  // three times the reload for ten times the bytes is worth less
  large.bytes[1] = 10;
  large.reload[1] = 3;
  (void)large.pass({0, 1});
  EXPECT_EQ(large.pass({0}), 1u);
}

TEST(CacheManager, PinsHitFromTheirSecondUseAndKeepTheirRoom) {
  ManagedCache c = {.model = ImportanceModel::untrained(),
                    .options = {.capacity = 2, .pinned = {0, 0, 1}, .pinned_bytes = 1}};
  EXPECT_EQ(c.pass({0, 1, 2}), 0u);
  for (int pass = 0; pass < 5; ++pass) EXPECT_EQ(c.pass({0, 1, 2}), 2u);  // 0, for which there is room, and 2
  ManagedCache full = {.model = ImportanceModel::untrained(),
                       .options = {.capacity = 1, .pinned = {1}, .pinned_bytes = 1}};
  for (int pass = 0; pass < 5; ++pass) EXPECT_EQ(full.pass({1}), 0u);
}

TEST(CacheManager, ABlockThatIsTooLargeLeavesTheCacheAsItWas) {
  ManagedCache c = untrained(2);
  c.bytes[9] = 3;
  c.reload[9] = 1000;
  (void)c.pass({0, 1});
  EXPECT_EQ(c.pass({9, 0, 1}), 2u);
}

TEST(CacheManager, ReadsAheadWhatIsForetoldUntilItProvesUseless) {
  ManagedCache c = {.model = halves(4), .options = {.capacity = 2, .read_ahead = {.least_chance = 0.6}}};
  c.model.same_pass[0] = {{.block = 2, .early = 0, .late = 0}};
  c.model.next_pass[0] = {{.block = 2, .early = 20, .late = 20}};  // 0 now: 2 in the next pass
  c.bytes[3] = 2;
  (void)c.pass({2, 3});  // sizes become known; 2 is in the cache
  auto push_out = [&] {  // whatever was there: a block that is worth more than all
    c.reload[3] = 1e6;
    (void)c.pass({3});
    c.reload[3] = 1e-6;
    (void)c.pass({3});
  };
  push_out();
  (void)c.pass({0});
  EXPECT_EQ(c.pass({2}), 1u);  // was read before its turn
  EXPECT_EQ(c.cache.foretold().read, 1u);
  EXPECT_EQ(c.cache.foretold().used, 1u);

  for (int i = 0; i < 80; ++i) {
    push_out();
    (void)c.pass({0});
    (void)c.pass({1});  // not what was foretold
  }
  const CacheManager::Foretold stopped = c.cache.foretold();
  EXPECT_LT(c.cache.precision(), 0.5);
  EXPECT_GT(stopped.held_back, 10u);
  EXPECT_LT(stopped.read, 60u);  // (63/64)^45 is below one half

  for (int i = 0; i < 80; ++i) {
    push_out();
    (void)c.pass({0});
    (void)c.pass({2});
  }
  EXPECT_GT(c.cache.precision(), 0.5);
  EXPECT_GT(c.cache.foretold().read, stopped.read + 20);  // resumed
}

TEST(Importance, ATurnThatWentByUnusedCountsOneToComeDoesNot) {
  const ImportanceModel m = halves(4);
  Importance importance(m);
  importance.begin_pass();
  const ImportanceFeatures before = importance.features(0);
  EXPECT_FLOAT_EQ(static_cast<float>(before[2]), 0.5f);
  importance.note_use(2);  // the pass is at 5/8: the turns of 0 and 1 are over
  EXPECT_NEAR(importance.features(0)[3], 0.5 * std::exp2(-1 / kHalfLives[1]), 1e-6);
  EXPECT_NEAR(importance.features(3)[3], 0.5, 1e-6);
  EXPECT_NEAR(importance.until_turn(3), 0.25, 1e-6);
  EXPECT_NEAR(importance.until_turn(1), 0.75, 1e-6);
  EXPECT_NEAR(importance.until_turn(2), 1, 1e-6);
}

TEST(Importance, EvidenceHoldsForOneTurn) {
  ImportanceModel m = halves(3);
  m.next_pass[0] = {{.block = 2, .early = 5, .late = 5}};
  Importance importance(m);
  importance.begin_pass();
  importance.note_use(0);
  importance.note_use(2);
  EXPECT_NEAR(importance.foretold(2), 0.5, 1e-6);  // −5 + 5: of the next turn
  importance.begin_pass();
  EXPECT_NEAR(importance.foretold(2), 0.5, 1e-6);
  importance.begin_pass();
  EXPECT_NEAR(importance.foretold(2), 1 / (1 + std::exp(5)), 1e-6);
}

// Pins that change: what was pinned is kept as any other, what is pinned now has its room, and what no longer fits
// leaves.
TEST(CacheManager, OtherPinsTakeEffectAtOnce) {
  ManagedCache c = {.model = halves(6), .options = {.capacity = 3, .pinned = {1, 1, 0, 0, 0, 0}, .pinned_bytes = 2}};
  (void)c.pass({0, 1, 2});
  EXPECT_EQ(c.pass({0, 1, 2}), 3u);
  const std::vector<uint32_t> left = c.cache.repin({0, 0, 0, 1, 1, 0}, 2);
  EXPECT_EQ(left.size(), 2u) << "room for one of the three";
  c.cache.pin_came({.block = 3, .bytes = 1, .reload = 1});
  EXPECT_TRUE(c.cache.holds(3));
  EXPECT_FALSE(c.cache.holds(4)) << "pinned, and not there yet";
  EXPECT_EQ(c.pass({3, 4}), 1u);
  EXPECT_EQ(c.pass({3, 4}), 2u);
}

}  // namespace
}  // namespace ridge::cache_manager_test
