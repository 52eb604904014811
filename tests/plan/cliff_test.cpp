// What users of other engines filed: a model slightly larger than memory is read in whole for every token. Here what
// does not fit is all that is read (docs/cases.md).
#include <gtest/gtest.h>

#include "base/units.h"
#include "plan/planner.h"

namespace ridge {
namespace {

constexpr uint32_t kLayers = 64, kRows = 256, kCols = 1024;  // Q8_0: 272 KiB each, 17 MiB in all

Program layered(uint64_t slot) {
  Program p;
  p.files = {"model"};
  const uint64_t row = row_bytes(Type::Q8_0, kCols);
  for (uint32_t l = 0; l < kLayers; ++l) {
    p.tensors.push_back({.name = "t", .type = Type::Q8_0, .rows = kRows, .cols = kCols, .offset = l * kRows * row});
    const uint64_t panels = slot == 0 ? kRows / 16 : std::max<uint64_t>(1, slot / (16 * row));
    std::vector<Slice> slices;
    for (uint32_t r = 0; r < kRows; r += static_cast<uint32_t>(panels) * 16) {
      const auto end = static_cast<uint32_t>(std::min<uint64_t>(kRows, r + panels * 16));
      Block b{.name = "b", .pieces = {{l, r, end}}};
      b.storage_bytes = b.memory_bytes = p.tensors[l].stored_bytes(r, end);
      slices.push_back({static_cast<BlockId>(p.blocks.size()), 0, 1});
      p.visits.push_back({static_cast<BlockId>(p.blocks.size()), {}});
      p.blocks.push_back(b);
    }
    p.steps.push_back(slices);
  }
  return p;
}

TEST(Cliff, SlightlyTooLittleMemoryReadsSlightlyMore) {
  PlanInput in;
  in.program = layered;
  in.fixed = [](const Program&, uint32_t) {
    Account a;
    a.add("fixed", 100 * kKiB);
    return a;
  };
  in.batches = {1};
  const Plan resident = make_plan(in).value();
  ASSERT_FALSE(resident.placement.streams());
  const uint64_t whole = resident.program.memory_bytes();
  for (uint64_t missing : {uint64_t{1}, 256 * kKiB, kMiB, 3 * kMiB}) {
    in.budget = resident.account.total() - missing;
    auto plan = make_plan(in);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    const uint64_t streamed = plan.value().placement.streamed_bytes(plan.value().program);
    // Streaming itself needs slots, reading threads, and room that huge pages round up to: 2 MiB each of pins and
    // slots.
    const SourceMemory m = StreamingSource::memory(plan.value().program, plan.value().placement, {}, false);
    EXPECT_LE(streamed, missing + m.slots + m.io + 2 * kMiB + plan.value().program.largest_block_storage()) << missing;
    EXPECT_LT(streamed, whole / 2) << missing << " bytes short, and most of the model is read for each token";
  }
}

}  // namespace
}  // namespace ridge
