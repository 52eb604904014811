// Passes over made-up programs on made-up machines, against what can be counted by hand.
#include "sim/host_model.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/units.h"
#include "plan/planner.h"

namespace ridge::sim {
namespace {

// `n` blocks of one Q8_0 matrix each, of `rows` × 1024 (1,088 bytes a row), read in whole requests.
Program matrices(uint32_t n, uint32_t rows = 1024) {
  Program p;
  p.files = {"model"};
  uint64_t offset = 0;
  for (uint32_t i = 0; i < n; ++i) {
    p.tensors.push_back({.name = "t", .type = Type::Q8_0, .rows = rows, .cols = 1024, .offset = offset});
    Block b{.name = "b", .pieces = {{i, 0, rows}}};
    b.storage_bytes = b.memory_bytes = p.tensors[i].stored_bytes(0, rows);
    offset += round_up(b.storage_bytes, 4096);
    p.visits.push_back({.block = i, .cost = {.storage_bytes = b.storage_bytes, .memory_bytes = b.memory_bytes}});
    p.steps.push_back({{i, 0, 1}});
    p.blocks.push_back(b);
  }
  return p;
}

HostMachine machine() {
  HostMachine m;
  m.panel_bytes_per_s = 10e9;
  m.row_bytes_per_s = 5e9;
  m.storage = {.bytes_per_s = 1e9, .request_bytes = 512 * kKiB, .depth = 32};
  return m;
}

Placement pinned(const Program& p, std::initializer_list<BlockId> blocks, uint32_t slots = 2) {
  Placement placement{.pinned = std::vector<uint8_t>(p.blocks.size(), 0), .slots = slots};
  for (BlockId b : blocks) placement.pinned[b] = 1;
  return placement;
}

TEST(HostModel, ResidentPassesTakeWhatTheirBytesTake) {
  const Program p = matrices(20);
  Placement all{.pinned = std::vector<uint8_t>(20, 1)};
  HostMachine m = machine();
  m.visit_s = 1e-5;
  m.pass_s = 2e-3;
  const HostRun run = run_host(p, all, m, {.passes = 6});
  EXPECT_NEAR(run.pass_s, static_cast<double>(p.memory_bytes()) / 10e9 + 20 * 1e-5 + 2e-3, 1e-9);
  EXPECT_NEAR(run.waited_s, 0, 1e-9);
  EXPECT_EQ(run.hit_ratio, 1);
  EXPECT_EQ(run.read_bytes, 0);
}

TEST(HostModel, StreamedPassesTakeWhatStorageTakes) {
  const Program p = matrices(20);
  const double bytes = static_cast<double>(p.storage_bytes());
  const HostRun run = run_host(p, pinned(p, {}), machine(), {.passes = 6});
  EXPECT_NEAR(run.pass_s, bytes / 1e9, 1e-6);  // read-ahead wraps: no pass begins with waiting for its first block
  EXPECT_NEAR(run.read_bytes, bytes, 1);
  EXPECT_NEAR(run.waited_s, run.pass_s - bytes / 5e9, 1e-6);
  EXPECT_EQ(run.hit_ratio, 0);
  // With one slot nothing overlaps.
  const HostRun one = run_host(p, pinned(p, {}, 1), machine(), {.passes = 6});
  EXPECT_NEAR(one.pass_s, bytes / 1e9 + bytes / 5e9, 1e-6);
}

// Computing is the bottleneck: reading hides, but rows cost more than panels.
TEST(HostModel, FastStorageHidesBehindComputing) {
  const Program p = matrices(20);
  HostMachine m = machine();
  m.storage.bytes_per_s = 100e9;
  m.streamed_visit_s = 1e-4;
  const HostRun run = run_host(p, pinned(p, {0, 2, 4, 6, 8, 10, 12, 14, 16, 18}), m, {.passes = 6});
  const double half = static_cast<double>(p.memory_bytes()) / 2;
  EXPECT_NEAR(run.pass_s, half / 10e9 + half / 5e9 + 10 * 1e-4, 1e-6);
  EXPECT_NEAR(run.hit_ratio, 0.5, 1e-12);
}

TEST(HostModel, SpreadPinsAreFasterThanLeadingOnes) {
  const Program p = matrices(40);
  HostMachine m = machine();
  m.storage.bytes_per_s = 3.5e9;  // a read takes longer than its block, less than that and a pinned one together
  const uint64_t capacity = p.memory_bytes() / 2;
  auto pass = [&](std::string_view policy) {
    return run_host(p, pinned(p, {}), m, {.passes = 8, .policy = policy, .capacity = capacity}).pass_s;
  };
  EXPECT_LT(pass("pin-strided+stream"), pass("pin-leading+stream") * 0.95);
  EXPECT_LT(pass("pin-leading+stream"), pass("pin-leading"));
  EXPECT_NEAR(pass("lru"), pass("none"), 1e-9);
  EXPECT_LT(pass("belady"), pass("lru"));
}

TEST(HostModel, NeverFasterThanThePlannersBound) {
  const Program p = matrices(60);
  const HostMachine m = machine();
  const Rates rates{.storage = m.storage.bytes_per_s, .memory = m.panel_bytes_per_s, .rearrange = m.row_bytes_per_s};
  for (uint64_t share : {0u, 1u, 3u, 5u, 7u}) {
    Placement placement = pinned(p, {});
    placement.pinned = spread_pins(p, p.memory_bytes() / 8 * share);
    const double storage = bound_of(p, placement, rates).storage_s;
    EXPECT_GE(run_host(p, placement, m, {.passes = 6}).pass_s, storage - 1e-9);
  }
}

// Two of eight experts a layer: a quarter of their bytes is read, each only after the layer before was computed.
TEST(HostModel, ExpertsAreReadWhenTheyAreChosen) {
  Program p = matrices(2 + 16, 512);
  // One dense block, then eight experts of two blocks, then another dense one.
  std::swap(p.visits[1], p.visits[17]);
  std::sort(p.visits.begin(), p.visits.end(), [](const Visit& a, const Visit& b) { return a.block < b.block; });
  for (BlockId b = 1; b <= 16; ++b) {
    p.blocks[b].on_demand = true;
    p.visits[b].chance = 0.25;
  }
  p.expert_groups = {{.first_step = 1, .experts = 8, .used = 2}};
  Placement placement = pinned(p, {0, 17});
  placement.expert_slots = 4;
  const HostRun run = run_host(p, placement, machine(), {.passes = 40});
  const double block = static_cast<double>(p.blocks[0].memory_bytes);
  EXPECT_NEAR(run.read_bytes, 4 * block, 1);
  EXPECT_NEAR(run.visited_bytes, 6 * block, 1);
  // The dense blocks, four reads that nothing hides but the computing of those that came before, the last one's rows.
  EXPECT_NEAR(run.pass_s, 2 * block / 10e9 + 4 * block / 1e9 + block / 5e9, 1e-6);
}

StoragePoint point(uint64_t bytes, int depth, double seconds) {
  const double rate = static_cast<double>(bytes) / seconds / 1e9;
  return {.request_bytes = bytes, .depth = depth, .direct = true, .gb_per_s = {rate, rate, rate, 5}};
}

TEST(HostModel, TheStorageQueueComesFromTheProbe) {
  MachineProfile profile{.name = "made up"};
  const double request = 20e-6, rate = 4e9, latency = 80e-6;
  for (uint64_t bytes : {16 * kKiB, 64 * kKiB, 256 * kKiB, kMiB}) {
    const double served = request + static_cast<double>(bytes) / rate;
    profile.storage.push_back(point(bytes, 1, latency + served));
    profile.storage.push_back(point(bytes, 16, served));
  }
  profile.storage.push_back(point(4 * kMiB, 16, 1));  // beyond what is fitted
  auto queue = storage_queue(profile, {});
  ASSERT_TRUE(queue.ok());
  EXPECT_NEAR(queue.value().bytes_per_s, rate, 1e3);
  EXPECT_NEAR(queue.value().request_s, request, 1e-12);
  EXPECT_NEAR(queue.value().latency_s, latency, 1e-12);
  // And back: the simulated device answers like the probed one.
  EventSim sim({.storage = queue.value()});
  sim.add({.lane = Lane::read, .bytes = 64 * kMiB, .from_storage = true});
  EXPECT_NEAR(sim.run().makespan, latency + 256 * (request + 256.0 * 1024 / rate), 1e-9);
}

// A device that is no line in the size of requests: at the engine's own size it is what was measured.
TEST(HostModel, TheStorageQueueHoldsTheEnginesOwnRequests) {
  MachineProfile profile{.name = "made up"};
  const uint64_t own = HostConstants().request_bytes;
  for (auto [bytes, seconds] : {std::pair{64 * kKiB, 40e-6}, {own, 70e-6}, {kMiB, 420e-6}}) {
    profile.storage.push_back(point(bytes, 32, seconds));
  }
  auto queue = storage_queue(profile, {});
  ASSERT_TRUE(queue.ok());
  EXPECT_NEAR(queue.value().request_s + static_cast<double>(own) / queue.value().bytes_per_s, 70e-6, 1e-9);
}

TEST(HostModel, AProfileWithoutFiguresIsRefused) {
  MachineProfile profile{.name = "bare"};
  auto refused = host_machine(profile, {.threads = 2, .footprint_bytes = kGiB});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("ridge probe"), std::string::npos);
  profile.reads.push_back({.footprint_bytes = kGiB, .threads = 1, .gb_per_s = {10, 10, 10, 5}});
  EXPECT_FALSE(host_machine(profile, {.threads = 1, .footprint_bytes = kGiB}).ok());
  profile.storage.push_back(point(64 * kKiB, 8, 1e-4));
  profile.storage.push_back(point(kMiB, 8, 3e-4));
  EXPECT_TRUE(host_machine(profile, {.threads = 1, .footprint_bytes = kGiB}).ok());
}

}  // namespace
}  // namespace ridge::sim
