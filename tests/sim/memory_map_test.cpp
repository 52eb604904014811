// The memory map of a machine of tiers: nothing lies twice or outside, what is touched most lies inside, and no read is
// lost.
#include "sim/memory_map.h"

#include <gtest/gtest.h>

#include "base/units.h"
#include "sim/chosen_visits.h"
#include "sim/ir_build.h"

namespace ridge::sim {
namespace memory_map_test {

constexpr uint64_t kBlockBytes = 4 * kKiB;
constexpr uint32_t kDense = 4, kBundles = 16;

NpuMachine two_srams() {
  NpuMachine m;
  m.name = "made up";
  m.registers = Tier{.name = "registers", .bytes = 512};
  m.local =
      Tier{.name = "local", .bytes = 32 * kKiB, .read_bytes_per_s = 1e11, .write_bytes_per_s = 1e11, .burst_bytes = 64};
  m.shared = Tier{
      .name = "shared", .bytes = 12 * kKiB, .read_bytes_per_s = 1e10, .write_bytes_per_s = 1e10, .burst_bytes = 64};
  m.dram = Tier{.name = "DRAM", .bytes = kGiB, .read_bytes_per_s = 1e9, .burst_bytes = 128};
  m.dram.read_j_per_byte = 1e-10;
  m.dram.row_bytes = 1024;
  m.dram.activate_j = 1e-9;
  m.macs_per_s = m.float_macs_per_s = 1e9;
  m.staging_bytes = 8 * kKiB;
  m.reserved_bytes = 4 * kKiB;
  return m;
}

// Four blocks of every pass, then bundles of a layer, the first of which are touched often and the last seldom.
Program skewed_program() {
  Program p;
  p.files = {"model.ridge"};
  uint64_t offset = 8192;
  auto add = [&](std::string name, bool on_demand, double chance) {
    const auto id = static_cast<uint32_t>(p.blocks.size());
    p.tensors.push_back(
        {.name = name, .type = Type::F32, .rows = 16, .cols = 64, .offset = offset, .layout = Layout::panels});
    p.blocks.push_back({.name = std::move(name),
                        .pieces = {{id, 0, 16}},
                        .storage_bytes = kBlockBytes,
                        .memory_bytes = kBlockBytes,
                        .on_demand = on_demand});
    p.visits.push_back({.block = id, .cost = {}, .chance = chance});
    p.steps.push_back({{id, 0, 1}});
    offset += 8192;
  };
  for (uint32_t i = 0; i < kDense; ++i) add("blk.0.attn/" + std::to_string(i), false, 1);
  p.expert_groups.push_back({.first_step = kDense, .experts = kBundles, .used = 4, .held = true});
  for (uint32_t i = 0; i < kBundles; ++i) {
    add("blk.0.ffn." + std::to_string(i) + "/0", true, i < 4 ? 0.9 : 0.02);
    p.steps.push_back({{p.visits.back().block, 0, 1}});
  }
  p.other.kv_bytes = 4 * kDense * kKiB;
  p.other.storage_bytes = 256;
  return p;
}

class SkewedMap : public ::testing::Test {
 protected:
  const Program program_ = skewed_program();
  const NpuMachine machine_ = two_srams();
  const NpuWork work_ = npu_work(program_, {.passes = 64});
  const NpuRun run_ = run_npu(work_, machine_, {});
  const MemoryMap map_ = memory_map(work_, machine_, run_, dram_image(program_, 256 * kKiB));

  uint64_t in_sram(uint32_t object) const {
    uint64_t sum = 0;
    for (const MapRange& r : map_.ranges) sum += r.object == object && r.tier != TierKind::dram ? r.bytes : 0;
    return sum;
  }
};

TEST_F(SkewedMap, RangesAreApartAndInsideTheirTiers) {
  uint64_t end = 0;
  TierKind tier = TierKind::registers;
  for (const MapRange& r : map_.ranges) {
    if (r.tier != tier) end = 0;
    EXPECT_GE(r.tier, tier);
    tier = r.tier;
    EXPECT_GE(r.address, end) << r.what;
    EXPECT_GT(r.bytes, 0u) << r.what;
    end = r.address + r.bytes;
    const Tier* of = tier == TierKind::registers     ? &*machine_.registers
                     : tier == TierKind::local_sram  ? &*machine_.local
                     : tier == TierKind::shared_sram ? &*machine_.shared
                                                     : &machine_.dram;
    EXPECT_LE(end, of->bytes) << r.what;
    if (r.object >= 0) {
      EXPECT_EQ(r.address % of->burst_bytes, 0u) << r.what;
    }
  }
  EXPECT_EQ(map_.ranges.back().what, "keys and values");
  EXPECT_EQ(map_.ranges.back().address, 256 * kKiB);
  EXPECT_EQ(map_.bytes[static_cast<size_t>(TierKind::dram)], 256 * kKiB + program_.other.kv_bytes);
}

TEST_F(SkewedMap, WhatIsTouchedMostLiesInside) {
  uint64_t dense = 0, hot = 0, cold = 0;
  for (uint32_t b = 0; b < program_.blocks.size(); ++b)
    (b < kDense ? dense : b < kDense + 4 ? hot : cold) += in_sram(b);
  // 20 KiB of local SRAM and 12 KiB of shared: the dense blocks and their keys and values alone are 32 KiB.
  EXPECT_EQ(dense + hot + cold + in_sram(kDense + kBundles) + in_sram(kDense + kBundles + 1) +
                in_sram(kDense + kBundles + 2) + in_sram(kDense + kBundles + 3),
            32 * kKiB);
  EXPECT_EQ(dense, kDense * kBlockBytes);
  EXPECT_EQ(hot + cold, 0u);
  Program small = program_;
  small.other.kv_bytes = 0;
  const NpuWork work = npu_work(small, {.passes = 64});
  const NpuRun run = run_npu(work, machine_, {});
  const MemoryMap map = memory_map(work, machine_, run, dram_image(small, 256 * kKiB));
  uint64_t cold_bytes = 0;
  for (const MapRange& r : map.ranges) cold_bytes += r.object >= kDense + 4 && r.tier != TierKind::dram ? r.bytes : 0;
  EXPECT_EQ(cold_bytes, 0u) << "hot bundles come before cold ones";
  EXPECT_GT(map.reads[static_cast<size_t>(TierKind::shared_sram)], 0);
}

TEST_F(SkewedMap, EveryReadIsServedOnce) {
  double expected = 0;
  for (const NpuVisit& v : work_.visits) expected += static_cast<double>(work_.objects[v.object].bytes) / 64;
  EXPECT_NEAR(map_.all_reads(), expected, 1e-6 * expected);
}

TEST_F(SkewedMap, ChancesOfBundlesAreThoseOfTheProgram) {
  Random random(3);
  std::vector<int> seen(program_.blocks.size(), 0);
  for (int i = 0; i < 2000; ++i) {
    for (const uint32_t v : chosen_visits(program_, random)) ++seen[program_.visits[v].block];
  }
  EXPECT_EQ(seen[0], 2000);
  EXPECT_NEAR(seen[kDense], 1800, 60);
  EXPECT_NEAR(seen[kDense + 9], 40, 25);
}

TEST_F(SkewedMap, TheIrSaysTheSameAndComesBack) {
  const IrSource source{.model = "m",
                        .fingerprint = 7,
                        .files = {{"model.ridge", 256 * kKiB}},
                        .operators = std::vector<Operator>(program_.blocks.size(), Operator::ffn)};
  Ir ir = ir_of(program_, source);
  EXPECT_EQ(ir.blocks[kDense + 9].touch, 20'000u);
  EXPECT_EQ(ir.blocks[0].align, 8192u);
  place(ir, work_, machine_, map_);
  for (uint32_t b = 0; b < ir.blocks.size(); ++b) {
    uint64_t kept = 0;
    for (const IrKept& k : ir.blocks[b].kept) kept += k.bytes;
    EXPECT_EQ(kept, in_sram(b));
  }
  const auto again = read_ir(ir_text(ir), "m.ir");
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(ir_text(again.value()), ir_text(ir));
  EXPECT_TRUE(require_same_program(again.value(), "m.ir", ir_of(program_, source), "m").ok());
  Program other = program_;
  other.tensors[5].offset += 64;
  auto same = require_same_program(again.value(), "m.ir", ir_of(other, source), "m");
  ASSERT_FALSE(same.ok());
  EXPECT_NE(same.error().message.find("line 14: block 'blk.0.ffn.1/0'"), std::string::npos) << same.error().message;
  EXPECT_NE(same.error().message.find(" at"), std::string::npos) << same.error().message;
}

TEST_F(SkewedMap, UnderABudgetBlocksArePinnedOrStream) {
  Ir ir = ir_of(program_, {.model = "m",
                           .files = {{"model.ridge", 256 * kKiB}},
                           .operators = std::vector<Operator>(program_.blocks.size(), Operator::ffn)});
  Placement placement{
      .pinned = std::vector<uint8_t>(program_.blocks.size(), 0), .slot_bytes = 65536, .slots = 2, .expert_slots = 7};
  placement.pinned[1] = 1;
  place(ir, program_, placement, 1 * kMiB);
  EXPECT_EQ(ir.blocks[0].home, IrHome::slot);
  EXPECT_EQ(ir.blocks[1].home, IrHome::pin);
  EXPECT_EQ(ir.blocks[kDense].home, IrHome::cache);
  EXPECT_EQ(ir.cache_slots, 7u);
  const auto again = read_ir(ir_text(ir), "m.ir");
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again.value().budget, kMiB);
}

TEST(PackAlignment, BurstsRowsAndPages) {
  NpuMachine m = two_srams();
  EXPECT_EQ(pack_alignment(m), 4096u);
  m.dram.row_bytes = 8192;
  EXPECT_EQ(pack_alignment(m), 8192u);
  m.dram.burst_bytes = 96;
  EXPECT_EQ(pack_alignment(m), 24576u);
  m.dram.row_bytes = 1000003;
  EXPECT_EQ(pack_alignment(m), 12288u) << "rows that no offset could meet are left out";
  m.dram.burst_bytes = 1000003;
  EXPECT_EQ(pack_alignment(m), 4096u);
}

}  // namespace memory_map_test
}  // namespace ridge::sim
