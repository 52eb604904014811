// What the importance policy learns, and that it holds on traces that it did not learn from.
#include "sim/importance_training.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sim/policy.h"
#include "sim/random.h"

namespace ridge::sim::importance_test {
namespace {

ReplayStats judged(std::string_view name, uint64_t capacity, const AccessTrace& train, const AccessTrace& trace) {
  auto policy = find_policy(name)->make({.capacity = capacity, .trace = &trace, .train = &train});
  return replay(*policy, trace);
}

// Of 40 blocks each is used with a chance of its own, the likelier again if it was used in the pass before.
AccessTrace lasting(size_t passes, uint64_t seed) {
  Random random(seed);
  AccessTrace trace;
  std::vector<uint8_t> on(40, 0);
  for (size_t pass = 0; pass < passes; ++pass) {
    trace.begin_pass();
    for (size_t b = 0; b < on.size(); ++b) {
      const double f = b % 4 == 0 ? 0.5 : 0.1;
      on[b] = random.uniform() < (on[b] != 0 ? 0.5 + f / 2 : f / 2 / (1 - f)) ? 1 : 0;
      if (on[b] != 0) trace.add(b, 1 + b % 3);
    }
  }
  trace.link();
  return trace;
}

TEST(ImportanceTraining, LearnsWhatForetellsWhat) {
  // Block 0 at random; 1 in the pass after 0; 2 in the same pass as 1; 3 at random.
  Random random(5);
  AccessTrace trace;
  bool before = false;
  for (int pass = 0; pass < 1500; ++pass) {
    trace.begin_pass();
    const bool zero = random.uniform() < 0.4;
    if (zero) trace.add(0, 1);
    if (before) trace.add(1, 1);
    if (before) trace.add(2, 1);
    if (random.uniform() < 0.4) trace.add(3, 1);
    before = zero;
  }
  trace.link();
  const TrainedImportance learned = train_importance(trace, {.capacity = 2});
  EXPECT_NEAR(learned.model.frequency[0], 0.4, 0.05);
  EXPECT_NEAR(learned.model.frequency[1], learned.model.frequency[2], 1e-6);
  auto next_chances = [&](std::initializer_list<uint32_t> used) {
    Importance importance(learned.model);
    importance.begin_pass();
    for (uint32_t b : used) importance.note_use(b);
    importance.begin_pass();
    return std::pair(importance.foretold(1), importance.foretold(3));
  };
  EXPECT_GT(next_chances({0, 3}).first, 0.9);
  EXPECT_LT(next_chances({3}).first, 0.1);
  EXPECT_NEAR(next_chances({0}).second, 0.4, 0.2);
  Importance importance(learned.model);
  importance.begin_pass();
  importance.begin_pass();
  const double early = importance.foretold(2);
  importance.note_use(1);
  EXPECT_LT(early, 0.1);
  EXPECT_GT(importance.foretold(2), early + 0.3);  // in its own pass
}

TEST(ImportanceTraining, CyclicOrdersHitWhatFits) {
  const AccessTrace trace = cyclic_trace(std::vector<uint64_t>(24, 1), 12);
  for (uint64_t capacity : {1u, 7u, 23u, 24u}) {
    EXPECT_EQ(judged("importance", capacity, trace, trace).hits, capacity * 11) << capacity;
  }
}

TEST(ImportanceTraining, BeatsEveryClassicPolicyOnAnotherTrace) {
  const AccessTrace train = lasting(1200, 1), trace = lasting(1200, 2);
  for (uint64_t capacity : {8u, 20u, 40u}) {
    const ReplayStats importance = judged("importance", capacity, train, trace);
    EXPECT_LT(importance.hit_size, judged("belady", capacity, train, trace).hit_size);
    for (const PolicyInfo& info : policies()) {
      if (info.kind != PolicyKind::classic) continue;
      EXPECT_GT(importance.hit_size, judged(info.name, capacity, train, trace).hit_size)
          << info.name << " " << capacity;
    }
  }
}

TEST(ImportanceTraining, TwiceTheSame) {
  const AccessTrace train = lasting(300, 1), trace = lasting(300, 2);
  for (const char* name : {"importance", "importance-ahead", "miss-cost"}) {
    const ReplayStats a = judged(name, 15, train, trace), b = judged(name, 15, train, trace);
    EXPECT_EQ(a.hit_size, b.hit_size) << name;
    EXPECT_EQ(a.ahead_size, b.ahead_size) << name;
  }
}

// Reading ahead turns misses into hits, and what it read is counted: it spares no more reading than without.
TEST(ImportanceTraining, WhatIsReadAheadIsCounted) {
  Random random(9);
  auto pairs = [&](int passes) {
    AccessTrace trace;
    for (int pass = 0; pass < passes; ++pass) {
      trace.begin_pass();
      const uint64_t topic = random.below(20);
      trace.add(topic, 1);
      trace.add(100 + topic, 1);  // foretold by the first
    }
    trace.link();
    return trace;
  };
  const AccessTrace train = pairs(2000), trace = pairs(500);
  const ReplayStats plain = judged("importance", 4, train, trace), ahead = judged("importance-ahead", 4, train, trace);
  EXPECT_GT(ahead.hits, plain.hits + 200);
  EXPECT_GT(ahead.ahead_size, 200u);
  EXPECT_LE(ahead.saved_size(), static_cast<double>(judged("belady", 4, train, trace).hit_size));
}

TEST(ImportanceTraining, TracesWithoutPassesOrOfOnePassAreTaken) {
  AccessTrace one;
  for (int i = 0; i < 20; ++i) one.add(static_cast<ObjectId>(i % 3), 1);
  one.link();
  EXPECT_EQ(judged("importance", 3, one, one).hits, 17u);
  const AccessTrace nothing;
  EXPECT_EQ(judged("importance", 3, nothing, one).hits, 17u);
}

// King's closed form: with room for one of two blocks, used with chances 0.8 and 0.2, the best hits are those of the
// likelier.
TEST(MissCost, KeepsWhatCostsMostToMiss) {
  Random random(3);
  AccessTrace trace;
  for (int i = 0; i < 4000; ++i) {
    trace.begin_pass();
    trace.add(random.uniform() < 0.8 ? 0 : 1, 1);
  }
  trace.link();
  EXPECT_NEAR(judged("miss-cost", 1, trace, trace).hit_ratio(), 0.8, 0.03);
}

}  // namespace
}  // namespace ridge::sim::importance_test
