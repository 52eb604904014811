#include "machine/compute_loop.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "machine/bandwidth_loop.h"

namespace ridge {
namespace {

// Every loop that this CPU can run ends, and leaves the registers of its caller alone.
TEST(ComputeLoop, RunsWhatThisCpuHas) {
  const CpuFeatures here = cpu_info().features;
  int ran = 0;
  for (const ComputeLoop& loop : compute_loops()) {
    if (!here.has_all(loop.needs)) continue;
    volatile double before = 1.25, kept = before * 3;
    volatile uint64_t numbers[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    loop.run(1);
    loop.run(1000);
    EXPECT_EQ(kept, 3.75) << loop.type << " " << loop.isa;
    for (uint64_t i = 0; i < 12; ++i) EXPECT_EQ(numbers[i], i + 1);
    ++ran;
  }
  EXPECT_GE(ran, 2);  // the scalar ones at least
}

// The table's counts, and that none stands before a narrower one: best_loop takes the last.
TEST(ComputeLoop, EachIsWiderThanTheOneBefore) {
  std::string_view type;
  double widest = 0;
  for (const ComputeLoop& loop : compute_loops()) {
    EXPECT_GT(loop.instructions, 0u);
    EXPECT_EQ(find_loop(loop.type, loop.isa), &loop);
    if (loop.type != type) widest = 0;
    type = loop.type;
    EXPECT_GE(most_operations_per_cycle(loop), widest) << loop.type << " " << loop.isa;
    widest = most_operations_per_cycle(loop);
  }
#if defined(__x86_64__)
  auto per_cycle = [](const char* of, const char* isa) { return most_operations_per_cycle(*find_loop(of, isa)); };
  EXPECT_EQ(per_cycle("f32", "scalar"), 4);
  EXPECT_EQ(per_cycle("f32", "avx512"), 64);
  EXPECT_EQ(per_cycle("f16", "avx512-fp16"), 128);
  EXPECT_EQ(per_cycle("int8", "avx512-vnni"), 256);
  EXPECT_EQ(per_cycle("int8", "amx-int8"), 2048);  // 16 × 16 × 64 multiply-adds in 16 cycles
  EXPECT_EQ(per_cycle("bf16", "amx-bf16"), 1024);
#endif
}

TEST(ComputeLoop, TheWidestThatTheFeaturesAllow) {
  EXPECT_EQ(best_loop("int8", kNoFeatures).isa, "scalar");
  EXPECT_EQ(best_loop("bf16", kNoFeatures).run, nullptr);
  EXPECT_EQ(best_loop("int4", cpu_info().features).run, nullptr);
  EXPECT_EQ(find_loop("int8", "abacus"), nullptr);
#if defined(__x86_64__)
  const CpuFeatures vectors = kAvx2Fma | kAvxVnni | kAvx512 | kAvx512Vnni;
  EXPECT_EQ(best_loop("int8", kAvx2Fma).isa, "avx2");
  EXPECT_EQ(best_loop("int8", vectors).isa, "avx512-vnni");
  EXPECT_EQ(best_loop("int8", vectors | kAmxInt8).isa, "amx-int8");
  EXPECT_EQ(best_loop("int8", (vectors | kAmxInt8).without(kAmxInt8)).isa, "avx512-vnni");
#endif
}

TEST(BandwidthLoop, BothLoopsReadEveryWordOnce) {
  std::vector<uint64_t> words(kReadLoopWords * 5);
  std::iota(words.begin(), words.end(), 100);
  uint64_t sum = std::accumulate(words.begin(), words.end(), uint64_t{0});
  const CpuFeatures here = cpu_info().features;
  for (CpuFeatures features : {kNoFeatures, kAvx2Fma, kAvx2Fma | kAvx512}) {
    if (!here.has_all(features)) continue;
    EXPECT_EQ(best_read_loop(features)(words.data(), words.size()), sum);
    EXPECT_EQ(fetching_read_loop(features)(words.data(), words.size()), sum);
  }
}

}  // namespace
}  // namespace ridge
