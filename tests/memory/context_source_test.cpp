// Each block by itself: the panels of every other source, nothing kept, and errors that name the file.
#include "memory/context_source.h"

#include <unistd.h>

#include "tests/memory/source_fixture.h"

namespace ridge {
namespace {

using test::Model;
using test::StreamingSourceTest;

class ContextSourceTest : public StreamingSourceTest {
 protected:
  ContextSourceOptions context_options(const Model& model) { return {.program = &model.program, .pool = &pool_}; }
};

TEST_F(ContextSourceTest, SameBytesAsAnyOtherSource) {
  for (const Model* model : {&rows_, &panels_}) {
    for (IoKind io : {IoKind::automatic, IoKind::threads, IoKind::buffered}) {
      ContextSourceOptions o = context_options(*model);
      o.io = io;
      auto source = ContextSource::create(o);
      ASSERT_TRUE(source.ok()) << source.error().message;
      for (int i = 0; i < 2; ++i) pass(*source.value());
      for (BlockId b : {3u, 0u, 3u}) check(*source.value(), b);
      EXPECT_EQ(source.value()->stats().pinned_visits, 0u);
    }
  }
}

TEST_F(ContextSourceTest, EveryVisitReadsTheBlockAgainAndTellsItsTimes) {
  PassTimes times;
  ContextSourceOptions o = context_options(rows_);
  o.times = &times;
  auto source = ContextSource::create(o);
  ASSERT_TRUE(source.ok()) << source.error().message;
  times.begin();
  pass(*source.value());
  const uint64_t once = source.value()->stats().bytes_read;
  EXPECT_GT(once, 0u);
  times.begin();
  pass(*source.value());
  EXPECT_EQ(source.value()->stats().bytes_read, 2 * once);
  for (const PassCost& cost : times.passes()) {
    PartCost sum;
    for (const PartCost& kind : cost) sum += kind;
    EXPECT_GT(sum.load.count(), 0);
    EXPECT_GT(sum.init.count(), 0);
    EXPECT_GT(sum.release.count(), 0);
    EXPECT_EQ(sum.execute.count(), 0);
  }
}

TEST_F(ContextSourceTest, AFileThatWasCutIsAnErrorAndTheNextBlockStillComes) {
  auto source = ContextSource::create(context_options(rows_));
  ASSERT_TRUE(source.ok()) << source.error().message;
  check(*source.value(), 0);
  ASSERT_EQ(truncate((folder_ / "model").c_str(), 64), 0);
  for (int again = 0; again < 2; ++again) {
    auto lease = source.value()->acquire(1);
    ASSERT_FALSE(lease.ok());
    EXPECT_NE(lease.error().message.find("model"), std::string::npos) << lease.error().message;
  }
}

TEST_F(ContextSourceTest, TheAccountHoldsTheLargestBlockTwice) {
  uint64_t largest = 0;
  for (const Block& b : rows_.program.blocks) largest = std::max(largest, b.storage_bytes + b.memory_bytes);
  EXPECT_GE(ContextSource::memory_bytes(rows_.program), largest);
}

}  // namespace
}  // namespace ridge
