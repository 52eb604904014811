// What users of other engines filed: a model slightly larger than memory is read in whole for every token. Here what
// does not fit is all that is read (docs/cases.md).
#include <gtest/gtest.h>

#include "base/units.h"
#include "plan/planner.h"
#include "tests/plan/layered.h"

namespace ridge {
namespace {

constexpr test::Layers kShape = {.layers = 64, .rows = 256, .cols = 1024, .type = Type::Q8_0};  // 272 KiB each, 17 MiB

TEST(Cliff, SlightlyTooLittleMemoryReadsSlightlyMore) {
  PlanInput in;
  in.program = [](uint64_t slot) { return test::layered(kShape, slot); };
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
