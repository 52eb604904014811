// Passes on made-up machines of tiers, against what can be counted by hand.
#include <gtest/gtest.h>

#include <optional>

#include "base/units.h"
#include "sim/event_sim.h"
#include "sim/npu_pipeline.h"
#include "sim/npu_run.h"
#include "sim/policy.h"

namespace ridge::sim {
namespace npu_test {

constexpr double kPico = 1e-12;

// 1 GB/s of DRAM without latency, 100 GB/s of SRAM, 1e9 multiply-adds a second; two buffers of 4 KiB.
NpuMachine machine(uint64_t sram_bytes = 1 * kMiB) {
  NpuMachine m;
  m.name = "made up";
  m.shared = Tier{.name = "SRAM", .bytes = sram_bytes, .read_bytes_per_s = 100e9, .write_bytes_per_s = 100e9};
  m.shared->read_j_per_byte = 2 * kPico;
  m.shared->write_j_per_byte = 3 * kPico;
  m.shared->leakage_w = 0.01;
  m.dram = Tier{.name = "DRAM", .bytes = kGiB, .read_bytes_per_s = 1e9, .burst_bytes = 64};
  m.dram.read_j_per_byte = 100 * kPico;
  m.dram.row_bytes = 1024;
  m.dram.activate_j = 1000 * kPico;
  m.macs_per_s = m.float_macs_per_s = 1e9;
  m.mac_j = 0.5 * kPico;
  m.float_mac_j = 4 * kPico;
  m.engines = 2;
  m.buffers = 2;
  m.staging_bytes = 8 * kKiB;
  return m;
}

// `n` objects of `bytes`, visited one after the other in each pass, each with `macs`.
NpuWork work(uint32_t n, uint64_t bytes, double macs, uint32_t passes = 8) {
  NpuWork w;
  for (uint32_t i = 0; i < n; ++i) w.objects.push_back({.name = "b", .bytes = bytes});
  for (uint32_t p = 0; p < passes; ++p) {
    w.pass_begins.push_back(w.visits.size());
    for (uint32_t i = 0; i < n; ++i) w.visits.push_back({.object = i, .macs = macs});
  }
  return w;
}

constexpr double kBlock = 64 * 1024;  // bytes of most objects here; 16 tiles

TEST(Npu, WhatIsAllInSramMovesNothing) {
  const NpuMachine m = machine();
  const NpuRun run = run_npu(work(8, 64 * kKiB, 5e4), m, {});
  EXPECT_EQ(run.dram_bytes, 0);
  EXPECT_EQ(run.row_opens, 0);
  EXPECT_DOUBLE_EQ(run.hit_ratio(), 1);
  EXPECT_NEAR(run.pass_s, 8 * 5e4 / 1e9, 1e-12);
  EXPECT_NEAR(run.waited_s, 0, 1e-12);
  EXPECT_EQ(run.bound(), "MACs");
  EXPECT_NEAR(run.energy.macs, 8 * 5e4 * 0.5 * kPico, 1e-18);
  EXPECT_NEAR(run.energy.shared, 8 * kBlock * 2 * kPico, 1e-18);
  EXPECT_NEAR(run.energy.leakage, 0.01 * run.pass_s, 1e-15);
  EXPECT_EQ(run.energy.dram + run.energy.rows + run.energy.local + run.energy.registers, 0);
}

TEST(Npu, WhatIsReadFasterThanSramAllowsIsBoundBySram) {
  const NpuRun run = run_npu(work(8, 64 * kKiB, 1), machine(), {});
  EXPECT_NEAR(run.pass_s, 8 * kBlock / 100e9, 1e-12);
  EXPECT_EQ(run.bound(), "inner SRAM bandwidth");
}

TEST(Npu, TwoBuffersHideTheShorterOfComputingAndTransfers) {
  const double dma_s = 8 * kBlock / 1e9;
  for (double macs : {1e4, 3e4, 6.5e4, 2e5}) {
    const NpuRun run = run_npu(work(8, 64 * kKiB, macs), machine(), {.policy = "none"});
    EXPECT_NEAR(run.pass_s, std::max(dma_s, 8 * macs / 1e9), 1e-3 * dma_s) << macs;
    EXPECT_EQ(run.bound(), 8 * macs / 1e9 > dma_s ? "MACs" : "DRAM bandwidth");
    EXPECT_DOUBLE_EQ(run.dram_bytes, 8 * kBlock);
    EXPECT_DOUBLE_EQ(run.energy.dram, 8 * kBlock * 100 * kPico);
    EXPECT_NEAR(run.energy.shared, 8 * kBlock * (2 + 3) * kPico, 1e-15);
    EXPECT_DOUBLE_EQ(run.row_opens, 8 * kBlock / 1024);
    EXPECT_NEAR(run.energy.rows, 8 * kBlock / 1024 * 1000 * kPico, 1e-15);
  }
}

TEST(Npu, OneBufferAddsThemUp) {
  NpuMachine m = machine();
  m.buffers = 1;
  const NpuRun run = run_npu(work(8, 64 * kKiB, 4e4), m, {.policy = "none"});
  EXPECT_NEAR(run.pass_s, 8 * (kBlock / 1e9 + 4e4 / 1e9), 1e-9);
  EXPECT_EQ(run.bound(), "waiting");
}

TEST(Npu, LatencyIsPaidByTileUnlessEnginesHideIt) {
  NpuMachine m = machine();
  m.dram.latency_s = 1e-6;  // a tile of 4 KiB takes 4.1 µs
  const NpuWork w = work(8, 64 * kKiB, 1e3);
  const double dma_s = 8 * kBlock / 1e9;
  EXPECT_NEAR(run_npu(w, m, {.policy = "none"}).pass_s, dma_s, 1e-3 * dma_s);
  m.engines = 1;
  EXPECT_NEAR(run_npu(w, m, {.policy = "none"}).pass_s, dma_s + 8 * 16 * 1e-6, 1e-3 * dma_s);
}

TEST(Npu, WithoutPrefetchTheFirstTileOfEveryBlockIsWaitedFor) {
  NpuMachine m = machine();
  m.prefetch = 0;
  const double compute_s = 8 * 2e5 / 1e9, tile_s = 4096 / 1e9;
  EXPECT_NEAR(run_npu(work(8, 64 * kKiB, 2e5), m, {.policy = "none"}).pass_s, compute_s + 8 * tile_s, 1e-9);
  // And where a router chooses a block, prefetch does not help.
  m.prefetch = 1;
  NpuWork chosen = work(8, 64 * kKiB, 2e5);
  for (size_t i = 0; i < chosen.visits.size(); i += 2) chosen.visits[i].on_demand = true;
  EXPECT_NEAR(run_npu(chosen, m, {.policy = "none"}).pass_s, compute_s + 4 * tile_s, 1e-9);
}

TEST(Npu, PinsCutDramByCapacityOverSizeAndRecencyByNothing) {
  const NpuWork w = work(16, 64 * kKiB, 1e3);
  for (uint64_t kept : {64 * kKiB, 256 * kKiB, 768 * kKiB}) {
    const NpuMachine m = machine(kept + 8 * kKiB);
    EXPECT_EQ(m.room(), kept);
    const NpuRun none = run_npu(w, m, {.policy = "none"}), pins = run_npu(w, m, {}),
                 lru = run_npu(w, m, {.policy = "lru"});
    EXPECT_DOUBLE_EQ(none.dram_bytes, 16 * kBlock);
    EXPECT_DOUBLE_EQ(lru.dram_bytes, 16 * kBlock);
    EXPECT_DOUBLE_EQ(pins.dram_bytes, 16 * kBlock - static_cast<double>(kept));
    EXPECT_NEAR(pins.pass_s, pins.dram_bytes / 1e9, 2e-3 * none.pass_s);
    EXPECT_LT(pins.energy.total(), none.energy.total());
    uint64_t in_sram = 0;
    for (const NpuHome& home : pins.homes) in_sram += home.shared;
    EXPECT_EQ(in_sram, kept);
  }
}

TEST(Npu, LocalSramFillsFirstAndSharedSramFeedsIt) {
  NpuMachine m = machine(256 * kKiB);
  m.local = Tier{.name = "local", .bytes = 72 * kKiB, .read_bytes_per_s = 400e9, .write_bytes_per_s = 400e9};
  m.local->read_j_per_byte = 1 * kPico;
  m.local->write_j_per_byte = 1.5 * kPico;
  m.shared->read_bytes_per_s = 10e9;
  const NpuRun run = run_npu(work(8, 64 * kKiB, 1e3), m, {});
  uint64_t local = 0, shared = 0;
  for (const NpuHome& home : run.homes) {
    local += home.local;
    shared += home.shared;
  }
  EXPECT_EQ(local, 64 * kKiB);
  EXPECT_EQ(shared, 256 * kKiB);
  EXPECT_DOUBLE_EQ(run.dram_bytes, 3 * kBlock);
  EXPECT_NEAR(run.busy.shared_sram, 4 * kBlock / 10e9, 1e-12);
  EXPECT_NEAR(run.energy.local, (8 * 1 + 7 * 1.5) * kBlock * kPico, 1e-15);
  EXPECT_NEAR(run.energy.shared, 4 * kBlock * 2 * kPico, 1e-15);
  // Two buses, but the same two buffers in the order of the pass: between the longer of the two and their sum.
  EXPECT_GE(run.pass_s, run.bound_s());
  EXPECT_LE(run.pass_s, 1.001 * (3 * kBlock / 1e9 + 4 * kBlock / 10e9));
}

TEST(Npu, SharedSramThatCostsTimeKeepsNothingForSeconds) {
  const NpuWork w = work(8, 64 * kKiB, 1e3);
  for (double gb_per_s : {0.5, 1.0, 10.0}) {
    NpuMachine m = machine(256 * kKiB);
    m.local = m.shared;
    m.local->bytes = 72 * kKiB;
    m.shared->read_bytes_per_s = gb_per_s * 1e9;
    const NpuRun time = run_npu(w, m, {.worth = NpuWorth::seconds}), energy = run_npu(w, m, {});
    EXPECT_EQ(time.room_bytes, (gb_per_s < 1 ? 64 : 320) * kKiB) << gb_per_s;
    EXPECT_LE(time.pass_s, energy.pass_s) << gb_per_s;
    EXPECT_LE(energy.energy.dram, time.energy.dram * 1.0001) << gb_per_s;
    EXPECT_DOUBLE_EQ(energy.dram_bytes, 3 * kBlock);
  }
}

// Device core energy and rate of one configuration, as DRAMsim3 gave them (1 million cycles, no PHY).
struct Dram {
  const char* name;
  uint64_t scattered_bytes;  // of a row, in the random pattern
  double stream_gb_per_s, stream_pj, read_pj, stream_activate_pj;
  double random_gb_per_s, random_pj, random_activate_pj;
};
constexpr Dram kDrams[] = {
    {"LPDDR4-2400 x64", 128, 18.1, 11.7, 7.35, 0.09, 17.4, 20.1, 8.25},
    {"LPDDR3-1866 x64", 128, 13.5, 5.6, 5.0, 0.09, 4.9, 11.7, 5.3},
    {"DDR4-3200 x64", 64, 16.7, 16.5, 9.2, 0.29, 13.9, 48.9, 31},
    {"HBM2 128 b", 64, 152, 2.3, 1.57, 0.05, 61, 4.7, 1.6},
};

// Bursts and background from the stream, activation from the random pattern, a row as long as the stream's share of
// activations says; the bus and the time of a row from both rates. What is foretold: the total energy per bit of the
// random pattern, in which the background takes longer, and that both patterns come out of one set of figures.
TEST(Npu, DramEnergyAndRateFollowDramsim3) {
  for (const Dram& d : kDrams) {
    const double scattered_bits = static_cast<double>(d.scattered_bytes) * 8;
    NpuMachine m = machine(64 * kKiB);
    m.shared->leakage_w = m.mac_j = 0;
    m.shared->read_bytes_per_s = m.shared->write_bytes_per_s = 1e13;
    m.dram.read_j_per_byte = d.read_pj * 8 * kPico;
    m.dram.activate_j = d.random_activate_pj * scattered_bits * kPico;
    m.dram.row_bytes = round_up(static_cast<uint64_t>(m.dram.activate_j / kPico / d.stream_activate_pj / 8), 64);
    const double rows_of_byte = 1 / static_cast<double>(m.dram.row_bytes);
    const double more_rows = 1 / static_cast<double>(d.scattered_bytes) - rows_of_byte;
    m.dram.row_s = 1e-9 * (1 / d.random_gb_per_s - 1 / d.stream_gb_per_s) / more_rows;
    m.dram.read_bytes_per_s = 1 / (1e-9 / d.stream_gb_per_s - m.dram.row_s * rows_of_byte);
    m.dram.leakage_w = (d.stream_pj - d.read_pj - d.stream_activate_pj) * d.stream_gb_per_s * 8e-3;

    auto pj_per_bit = [](const NpuRun& run) {
      return (run.energy.dram + run.energy.rows + run.energy.leakage) / (run.dram_bytes * 8 * kPico);
    };
    const NpuRun stream = run_npu(work(4, 1 * kMiB, 1), m, {.policy = "none"});
    EXPECT_NEAR(stream.dram_bytes / stream.pass_s / 1e9, d.stream_gb_per_s, 0.01 * d.stream_gb_per_s) << d.name;
    EXPECT_NEAR(pj_per_bit(stream), d.stream_pj, 0.05 * d.stream_pj) << d.name;
    const NpuRun random = run_npu(work(4096, d.scattered_bytes, 1e-3), m, {.policy = "none"});
    EXPECT_NEAR(random.dram_bytes / random.pass_s / 1e9, d.random_gb_per_s, 0.01 * d.random_gb_per_s) << d.name;
    EXPECT_NEAR(pj_per_bit(random), d.random_pj, 0.05 * d.random_pj) << d.name;
  }
}

TEST(Npu, PerturbedMachinesFollow) {
  const NpuWork w = work(16, 64 * kKiB, 1e3);
  const NpuRun base = run_npu(w, machine(264 * kKiB), {});
  NpuMachine m = machine(264 * kKiB);
  m.dram.read_bytes_per_s *= 2;
  EXPECT_NEAR(run_npu(w, m, {}).pass_s, base.pass_s / 2, 0.01 * base.pass_s);
  m = machine(264 * kKiB);
  m.dram.read_j_per_byte *= 3;
  EXPECT_NEAR(run_npu(w, m, {}).energy.dram, base.energy.dram * 3, 1e-15);
  m = machine(264 * kKiB);
  m.macs_per_s /= 1000;
  EXPECT_NEAR(run_npu(w, m, {}).pass_s, 16e3 / 1e6, 1e-4);
  m = machine(264 * kKiB);
  m.macs_per_s /= 1000;
  m.utilisation = 0.25;
  EXPECT_NEAR(run_npu(w, m, {}).pass_s, 4 * 16e3 / 1e6, 4e-4);
  m = machine(264 * kKiB);
  m.shared->bytes *= 2;
  EXPECT_LT(run_npu(w, m, {}).dram_bytes, base.dram_bytes);
  m = machine(264 * kKiB);
  m.dram.burst_bytes = 4096;
  NpuWork small = work(64, 100, 1);
  EXPECT_DOUBLE_EQ(run_npu(small, m, {.policy = "none"}).dram_bytes, 64 * 4096);
}

// Objects of 96 bytes move a third more than they hold; objects of 64 open more rows a byte. Where rows cost time and
// no energy, the former are worth more joules and the latter more seconds.
TEST(Npu, WorthDecidesWhatIsKept) {
  NpuWork w;
  for (uint32_t i = 0; i < 160; ++i) w.objects.push_back({.name = "b", .bytes = i < 64 ? 96u : 64u});
  for (uint32_t pass = 0; pass < 4; ++pass) {
    w.pass_begins.push_back(w.visits.size());
    for (uint32_t i = 0; i < w.objects.size(); ++i) w.visits.push_back({.object = i, .macs = 1});
  }
  NpuMachine m = machine(8 * kKiB + 64 * 96);  // room for one kind or the other
  m.dram.activate_j = 0;
  m.dram.row_s = 1e-6;
  auto kept = [&](NpuWorth worth, uint32_t first, uint32_t end) {
    const NpuRun run = run_npu(w, m, {.worth = worth});
    uint64_t bytes = 0;
    for (uint32_t i = first; i < end; ++i) bytes += run.homes[i].shared;
    return bytes;
  };
  EXPECT_EQ(kept(NpuWorth::energy, 0, 64), 64 * 96u);
  EXPECT_EQ(kept(NpuWorth::seconds, 64, 160), 96 * 64u);
}

// The same tiles as operations of the event simulator: another program, the same times.
TEST(Npu, PipelineAgreesWithTheEventSimulator) {
  for (uint32_t buffers : {1u, 2u, 3u}) {
    for (double compute_s : {1e-6, 4e-6, 9e-6}) {
      NpuMachine m = machine();
      m.buffers = buffers;
      m.engines = 8;
      m.prefetch = 100;
      m.staging_bytes = 4096 * buffers;
      NpuPipeline pipeline(m);
      EventSim sim({.slots = buffers, .storage = {.bytes_per_s = 1e9, .request_bytes = 4096, .depth = 8}});
      std::optional<OpId> last;
      for (int i = 0; i < 50; ++i) {
        pipeline.visit({.compute_s = compute_s, .dram = {.bytes = 4096, .bus_s = 4096e-9}});
        const OpId read = sim.add({.lane = Lane::read, .bytes = 4096, .from_storage = true, .take = {.slots = 1}});
        const OpId compute = sim.add({.lane = Lane::compute, .seconds = compute_s, .give = {.slots = 1}}, {read});
        if (last) sim.after(compute, *last);
        last = compute;
      }
      EXPECT_NEAR(pipeline.end(), sim.run().makespan, 1e-10) << buffers << " " << compute_s;
    }
  }
}

TEST(Npu, SameTwiceForEveryPolicyAndNoneBeatsBelady) {
  const NpuWork w = work(12, 64 * kKiB, 1e3, 4);
  const NpuMachine m = machine(264 * kKiB);  // all pieces are alike: Belady is optimal
  const double best = run_npu(w, m, {.policy = "belady"}).hit_bytes;
  for (const PolicyInfo& p : policies()) {
    if (p.reads_ahead) continue;
    const NpuRun once = run_npu(w, m, {.policy = p.name}), again = run_npu(w, m, {.policy = p.name});
    EXPECT_EQ(once.pass_s, again.pass_s) << p.name;
    EXPECT_EQ(once.energy.total(), again.energy.total()) << p.name;
    EXPECT_LE(once.hit_bytes, best + 1) << p.name;
  }
}

}  // namespace npu_test
}  // namespace ridge::sim
