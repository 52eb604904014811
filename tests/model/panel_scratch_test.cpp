// Room to rearrange streamed rows in: it grows with the activations that kernels prepare anew, up to a bound.
#include <gtest/gtest.h>

#include "base/units.h"
#include "model/compute.h"
#include "tensor/panel.h"
#include "tests/plan/layered.h"

namespace ridge {
namespace {

uint64_t scratch(Type type, uint32_t rows, uint32_t cols, uint64_t tokens) {
  return panel_scratch_bytes(test::layered({.layers = 2, .rows = rows, .cols = cols, .type = type}, 0), tokens);
}

TEST(PanelScratch, GrowsWithFloatActivationsUpToABound) {
  EXPECT_EQ(scratch(Type::BF16, 2048, 2048, 1), 128 * kKiB);
  EXPECT_EQ(scratch(Type::BF16, 2048, 2048, 64), 512 * kKiB);
  EXPECT_EQ(scratch(Type::BF16, 2048, 2048, 1024), 2 * kMiB);
  EXPECT_EQ(scratch(Type::BF16, 2048, 2048, 100000), 2 * kMiB);
}

TEST(PanelScratch, HoldsAPanelHoweverWide) {
  EXPECT_GE(scratch(Type::F32, 64, 131072, 1), panel_bytes(Type::F32, 131072));
}

TEST(PanelScratch, IsNoLargerThanTheMatrix) {
  EXPECT_EQ(scratch(Type::BF16, 128, 1024, 4096), panels_bytes(Type::BF16, 128, 1024));
}

// They are prepared once for all pieces.
TEST(PanelScratch, StaysAsItIsForInt8Activations) { EXPECT_EQ(scratch(Type::Q4_0, 4096, 2048, 1024), 128 * kKiB); }

TEST(PanelScratch, IsNoneWherePanelsAreStored) {
  Program program = test::layered({.layers = 2, .rows = 2048, .cols = 2048, .type = Type::BF16}, 0);
  for (StoredTensor& t : program.tensors) t.layout = Layout::panels;
  EXPECT_EQ(panel_scratch_bytes(program, 1024), 0u);
}

}  // namespace
}  // namespace ridge
