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
  for (CpuFeatures features : {kNoFeatures, kAvx2Fma, kAvx2Fma | kAvxVnni, kAvx2Fma | kAvx512,
                               kAvx2Fma | kAvx512 | kAvx512Vnni, kNeonDot, kNeonDot | kNeonI8mm}) {
    if (!here.has_all(features)) continue;
    for (const ComputeLoop& loop : {int8_loop(features), float_loop(features)}) {
      if (loop.run == nullptr) continue;
      EXPECT_GT(loop.operations, 0u);
      volatile double before = 1.25, kept = before * 3;
      loop.run(1);
      loop.run(1000);
      EXPECT_EQ(kept, 3.75);
    }
  }
}

TEST(ComputeLoop, WiderFeaturesGiveMoreOperations) {
#if defined(__x86_64__)
  EXPECT_EQ(int8_loop(kNoFeatures).run, nullptr);
  EXPECT_GT(int8_loop(kAvx2Fma | kAvx512 | kAvx512Vnni).operations, int8_loop(kAvx2Fma | kAvxVnni).operations);
  EXPECT_EQ(float_loop(kAvx2Fma | kAvx512).operations, 12u * 2 * 16);
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
