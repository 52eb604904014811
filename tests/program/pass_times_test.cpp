#include "program/pass_times.h"

#include <gtest/gtest.h>

#include <thread>

namespace ridge {
namespace {

using namespace std::chrono_literals;

TEST(PassTimes, KindsByTheEndOfAName) {
  EXPECT_EQ(part_kind("blocks.3.self"), PartKind::self);
  EXPECT_EQ(part_kind("blocks.27.cross/2"), PartKind::cross);
  EXPECT_EQ(part_kind("blocks.0.ffn"), PartKind::ffn);
  EXPECT_EQ(part_kind("first"), PartKind::other);
  EXPECT_EQ(part_kind(""), PartKind::other);
  EXPECT_EQ(part_kind("blocks.0.text"), PartKind::other);
}

// Time away is load; what the source tells is counted beside it, by the block's kind and in the pass that runs.
TEST(PassTimes, TimeAwayIsNoExecution) {
  for (bool tells : {false, true}) {
    PassTimes times;
    if (tells) times.source_tells();
    times.add("blocks.0.self", {.load = 1h});  // before any pass
    times.begin();
    times.enter("blocks.0.self");
    std::this_thread::sleep_for(30ms);
    times.away(25ms);
    times.enter("blocks.0.ffn");
    std::this_thread::sleep_for(20ms);
    times.add("blocks.0.self", {.load = 2s, .init = 3s, .release = 4s});
    times.end();
    times.begin();
    times.end();
    ASSERT_EQ(times.passes().size(), 2u);
    const PartCost self = times.passes()[0][0], ffn = times.passes()[0][2];
    EXPECT_EQ(self.load, std::chrono::nanoseconds(tells ? 2s : 2s + 25ms));
    EXPECT_EQ(self.init, std::chrono::nanoseconds(3s));
    EXPECT_EQ(self.release, std::chrono::nanoseconds(4s));
    EXPECT_GE(self.execute, 5ms);
    EXPECT_GE(ffn.execute, 20ms);
    EXPECT_EQ(ffn.load, 0ns);
    EXPECT_EQ(times.passes()[1][0].load, 0ns);
  }
}

}  // namespace
}  // namespace ridge
