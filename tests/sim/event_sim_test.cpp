// Lanes, slots, the driver and the storage queue, each on a case that can be counted by hand.
#include "sim/event_sim.h"

#include <gtest/gtest.h>

namespace ridge::sim {
namespace {

TEST(EventSim, ALaneDoesOneThingAtATime) {
  EventSim sim({});
  OpId a = sim.add({.seconds = 2}), b = sim.add({.seconds = 3});
  OpId c = sim.add({.lane = Lane::read, .seconds = 4});
  SimResult r = sim.run();
  EXPECT_EQ(r.times[a].end, 2);
  EXPECT_EQ(r.times[b].begin, 2);
  EXPECT_EQ(r.times[c].begin, 0);
  EXPECT_EQ(r.makespan, 5);
  EXPECT_EQ(r.busy[static_cast<size_t>(Lane::compute)], 5);
}

TEST(EventSim, WhatComesAfterWaitsForAll) {
  EventSim sim({});
  OpId read = sim.add({.lane = Lane::read, .seconds = 4});
  OpId first = sim.add({.seconds = 1});
  OpId second = sim.add({.seconds = 1}, {read, first});
  SimResult r = sim.run();
  EXPECT_EQ(r.times[second].begin, 4);
  EXPECT_EQ(r.waited, 3);
}

TEST(EventSim, TwoSlotsLetOneReadAhead) {
  // Reads of 2, computing of 1: with one slot they alternate (3 each), with two they overlap (2 each, and the last 1).
  for (uint32_t slots : {1u, 2u, 3u}) {
    EventSim sim({.slots = slots});
    for (BlockId b = 0; b < 10; ++b) {
      OpId read = sim.add({.lane = Lane::read, .block = b, .seconds = 2, .take = {.slots = 1, .bytes = 5}});
      sim.add({.block = b, .seconds = 1, .give = {.slots = 1, .bytes = 5}}, {read});
    }
    SimResult r = sim.run();
    EXPECT_EQ(r.makespan, slots == 1 ? 30 : 21) << slots;
    EXPECT_EQ(r.peak_bytes, slots == 1 ? 5u : 10u) << slots;  // reads set the pace: a third slot stays empty
  }
}

TEST(EventSim, ATierHoldsNoMoreThanItsCapacity) {
  EventSim sim({.bytes = 10});
  OpId a = sim.add({.lane = Lane::read, .seconds = 1, .take = {.bytes = 6}});
  OpId use = sim.add({.seconds = 5, .give = {.bytes = 6}}, {a});
  OpId b = sim.add({.lane = Lane::read, .seconds = 1, .take = {.bytes = 6}, .give = {.bytes = 6}});
  SimResult r = sim.run();
  EXPECT_EQ(r.times[b].begin, r.times[use].end);
  EXPECT_EQ(r.peak_bytes, 6u);
}

TEST(EventSim, TheDriverDoesOneThingAtATime) {
  EventSim sim({});
  OpId run = sim.add({.seconds = 3, .needs_driver = true});
  OpId init = sim.add({.lane = Lane::init, .seconds = 2, .needs_driver = true});
  OpId free = sim.add({.lane = Lane::release, .seconds = 1});
  SimResult r = sim.run();
  EXPECT_EQ(r.times[run].begin, 0);
  EXPECT_EQ(r.times[init].begin, 3);
  EXPECT_EQ(r.times[free].begin, 0);
}

// n requests, depth 1: n · (latency + size/rate). Deep enough: latency once, then the rate alone.
TEST(EventSim, DepthHidesLatency) {
  const double rate = 1000, latency = 0.5;
  auto time = [&](uint32_t depth, uint64_t bytes) {
    EventSim sim({.storage = {.bytes_per_s = rate, .latency_s = latency, .request_bytes = 100, .depth = depth}});
    sim.add({.lane = Lane::read, .bytes = bytes, .from_storage = true});
    return sim.run().makespan;
  };
  EXPECT_NEAR(time(1, 1000), 10 * (latency + 0.1), 1e-12);
  EXPECT_NEAR(time(32, 1000), latency + 1.0, 1e-12);
  EXPECT_NEAR(time(2, 1000), 5 * (latency + 0.1) + 0.1, 1e-12);  // pairs, and the last one's own transfer
  EXPECT_NEAR(time(32, 1050), latency + 1.05, 1e-12);
}

TEST(EventSim, ReadsShareTheStorageInOrder) {
  EventSim sim({.storage = {.bytes_per_s = 100, .latency_s = 1, .request_bytes = 100, .depth = 4}});
  OpId a = sim.add({.lane = Lane::read, .bytes = 200, .from_storage = true});
  OpId b = sim.add({.lane = Lane::read, .bytes = 100, .from_storage = true});
  SimResult r = sim.run();
  EXPECT_NEAR(r.times[a].end, 3, 1e-12);
  EXPECT_NEAR(r.times[b].end, 4, 1e-12);  // its latency passed while the other was read
  EXPECT_EQ(r.read_bytes, 300u);
  EXPECT_NEAR(r.busy[static_cast<size_t>(Lane::read)], 4, 1e-12);
}

TEST(EventSimDeathTest, AClaimBeyondTheLimitsIsABug) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EventSim sim({.slots = 1});
  sim.add({.take = {.slots = 2}});
  EXPECT_EXIT((void)sim.run(), testing::ExitedWithCode(70), "every operation can start");
}

}  // namespace
}  // namespace ridge::sim
