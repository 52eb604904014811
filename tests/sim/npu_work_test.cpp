// What a program and a trace ask of a machine of tiers: nothing is lost or counted twice.
#include "sim/npu_work.h"

#include <gtest/gtest.h>

namespace ridge::sim {
namespace npu_work_test {

// Four dense blocks and a layer of four experts, of which two are used; odd numbers, so that shares do not come out
// even.
Program program() {
  Program p;
  for (uint32_t b = 0; b < 12; ++b) {
    const bool expert = b >= 4;
    p.blocks.push_back({.name = "b", .storage_bytes = 1000 + b, .memory_bytes = 2000, .on_demand = expert});
    const double chance = expert ? 0.5 : 1;
    Visit v{.block = b, .cost = {}, .chance = chance};
    v.cost.storage_bytes = static_cast<uint64_t>(1000 * chance);
    v.cost.int_ops = static_cast<uint64_t>(4000 * chance);
    v.cost.flops = expert ? 0 : 100;
    v.cost.activation_bytes = static_cast<uint64_t>(64 * chance);
    v.cost.kv_bytes = expert ? 0 : 7;
    p.visits.push_back(v);
    p.steps.push_back({{b, 0, 1}});
  }
  p.expert_groups.push_back({.first_step = 4, .experts = 4, .used = 2});
  p.other.kv_bytes = 1001;
  p.other.flops = 4444;
  p.other.storage_bytes = 333;
  return p;
}

TEST(NpuWork, AProgramIsCountedOnce) {
  const Program p = program();
  const NpuWork w = npu_work(p, {.passes = 5});
  ASSERT_EQ(w.pass_begins.size(), 5u);
  EXPECT_EQ(w.bytes(NpuObjectKind::kv), 1001 + 4 * 7u);
  EXPECT_EQ(w.bytes(NpuObjectKind::rows), 333u);
  EXPECT_EQ(w.bytes(NpuObjectKind::weights), p.storage_bytes());
  for (size_t pass = 0; pass < 5; ++pass) {
    double macs = 0, float_macs = 0;
    uint64_t kv = 0, chosen = 0, dense = 0;
    for (size_t i = w.pass_begins[pass]; i < w.pass_end(pass); ++i) {
      const NpuVisit& v = w.visits[i];
      const NpuObject& o = w.objects[v.object];
      macs += v.macs;
      float_macs += v.float_macs;
      if (o.kind == NpuObjectKind::kv) kv += o.bytes;
      if (o.kind == NpuObjectKind::weights) (v.on_demand ? chosen : dense) += 1;
    }
    EXPECT_EQ(kv, 1001 + 4 * 7u);
    EXPECT_EQ(dense, 4u);
    EXPECT_EQ(chosen, 4u);  // two blocks for each of two experts
    // An expert's whole cost when it is visited, however unlikely that was.
    EXPECT_DOUBLE_EQ(macs, 8 * 4000 / 2.0);
    EXPECT_DOUBLE_EQ(float_macs, (4 * 100 + 4444) / 2.0);
  }
  const NpuWork same = npu_work(p, {.passes = 5}), other = npu_work(p, {.passes = 5, .seed = 2});
  bool differs = false;
  for (size_t i = 0; i < w.visits.size(); ++i) {
    EXPECT_EQ(w.visits[i].object, same.visits[i].object);
    differs = differs || w.visits[i].object != other.visits[i].object;
  }
  EXPECT_TRUE(differs);
}

TEST(NpuWork, ATraceHasAMultiplyAddPerByteAndChosenBlocks) {
  AccessTrace t;
  t.begin_pass();  // empty: as if it were not there
  for (int pass = 0; pass < 3; ++pass) {
    t.begin_pass();
    t.add(7, 100);
    t.add(pass == 1 ? 9 : 8, 50);
    t.add(7, 100);
  }
  t.link();
  const NpuWork w = npu_work(t);
  EXPECT_FALSE(w.counted_macs);
  EXPECT_EQ(w.pass_begins, (std::vector<size_t>{0, 3, 6}));
  EXPECT_EQ(w.bytes(NpuObjectKind::weights), 200u);
  ASSERT_EQ(w.visits.size(), 9u);
  for (size_t i = 0; i < 9; ++i) {
    EXPECT_EQ(w.visits[i].on_demand, i % 3 == 1);
    EXPECT_EQ(w.visits[i].macs, i % 3 == 1 ? 50 : 100);
  }
}

}  // namespace npu_work_test
}  // namespace ridge::sim
