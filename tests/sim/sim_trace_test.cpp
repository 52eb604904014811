// What a simulation tells as a trace: lanes, waits, passes, releases and memory of operations.
#include "sim/sim_trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "sim/lifecycle.h"

namespace ridge::sim {
namespace {

std::vector<TraceEvent> events_of(const EventSim& sim, const SimPasses& passes = {}) {
  Trace trace;
  write_trace(sim, sim.run(), passes, trace);
  return trace.take();
}

double seconds(const TraceEvent& e) { return std::chrono::duration<double>(e.end - e.begin).count(); }
double begin_s(const TraceEvent& e) { return std::chrono::duration<double>(e.begin.time_since_epoch()).count(); }

TEST(SimTrace, IsThatOfTheEngine) {
  EventSim sim({});
  OpId read = sim.add({.lane = Lane::read, .block = 7, .seconds = 2, .bytes = 64});
  sim.add({.block = 6, .seconds = 1});
  sim.add({.block = 7, .seconds = 1}, {read});
  const std::vector<TraceEvent> events = events_of(sim);
  ASSERT_EQ(events.size(), 4u);  // in the order of their ends
  EXPECT_EQ(events[0].lane, Lane::compute);
  EXPECT_EQ(events[0].block, 6u);
  EXPECT_EQ(events[1].lane, Lane::read);
  EXPECT_EQ(events[1].bytes, 64u);
  EXPECT_EQ(events[2].lane, Lane::wait);
  EXPECT_EQ(events[2].block, 7u);
  EXPECT_EQ(events[2].end - events[2].begin, std::chrono::seconds(1));
  EXPECT_EQ(events[3].begin.time_since_epoch(), std::chrono::seconds(2));
}

TEST(SimTrace, TellsWhenSlotsGoAndWhatMemoryThereIs) {
  EventSim sim({.slots = 1, .bytes = 100});
  OpId read = sim.add({.lane = Lane::read, .block = 1, .seconds = 2, .take = {.slots = 1, .bytes = 60}});
  sim.add({.block = 1, .seconds = 1, .give = {.slots = 1, .bytes = 60}}, {read});
  const std::vector<TraceEvent> events = events_of(sim, {.base_bytes = 5});
  std::vector<uint64_t> memory;
  for (const TraceEvent& e : events) {
    if (e.lane == Lane::memory) memory.push_back(e.bytes);
    if (e.lane == Lane::release) {
      EXPECT_EQ(begin_s(e), 3);
      EXPECT_EQ(seconds(e), 0);
    }
  }
  EXPECT_EQ(memory, (std::vector<uint64_t>{65, 5}));
  EXPECT_EQ(std::count_if(events.begin(), events.end(), [](auto& e) { return e.lane == Lane::release; }), 1);
}

// A device: computing and waiting make up each pass, and every context that was loaded is released.
TEST(SimTrace, PassesOfADeviceAreComputingAndWaiting) {
  auto device = load_context_device(RIDGE_TEST_DATA "/../../profiles/rk3588-anima.toml");
  ASSERT_TRUE(device.ok()) << device.error().message;
  for (uint32_t contexts : {1u, 2u}) {
    const LifecycleRun run = run_lifecycle(device.value(), fit_ladder(device.value()),
                                           {.passes = 3, .contexts = contexts, .lock = DriverLock::init});
    ASSERT_EQ(run.pass_ends.size(), 3u);
    const std::vector<TraceEvent> events = events_of(run.sim, {.ends = run.pass_ends});
    double passes = 0, computed = 0, waited = 0, named = 0;
    int64_t loads = 0, releases = 0;
    for (const TraceEvent& e : events) {
      if (e.lane == Lane::pass) passes += seconds(e);
      if (e.lane == Lane::compute) (e.block == kNoBlock ? named : computed) += seconds(e);
      if (e.lane == Lane::wait) waited += seconds(e);
      loads += e.lane == Lane::read;
      releases += e.lane == Lane::release;
    }
    EXPECT_NEAR(passes, computed + named + waited, 1e-6);
    EXPECT_NEAR(computed, 3 * device.value().pass_run_s(), 1e-5);
    EXPECT_NEAR(named, 3 * device.value().pass_host_s(), 1e-5);
    EXPECT_EQ(loads, static_cast<int64_t>(run.lifecycles));
    EXPECT_EQ(releases, loads);
  }
}

TEST(PassBounds, TheLargestIsTheBound) {
  auto device = load_context_device(RIDGE_TEST_DATA "/../../profiles/rk3588-anima.toml");
  ASSERT_TRUE(device.ok());
  const auto free = pass_bounds(device.value(), DriverLock::none),
             locked = pass_bounds(device.value(), DriverLock::init);
  EXPECT_EQ(free.size() + 1, locked.size());
  double most = 0;
  for (const auto& [name, s] : locked) most = std::max(most, s);
  EXPECT_EQ(most, pass_bound_s(device.value(), DriverLock::init));
}

}  // namespace
}  // namespace ridge::sim
