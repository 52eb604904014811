#include "machine/sched_watch.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace ridge {
namespace {

TEST(SchedWatch, AddsTheRunQueuesOfAllThreads) {
  std::filesystem::path root = std::filesystem::path(testing::TempDir()) / "sched_watch_root";
  for (const char* task : {"11", "12"}) {
    std::filesystem::create_directories(root / "proc/self/task" / task);
    std::ofstream(root / "proc/self/task" / task / "schedstat") << "9000000000 1500000000 7\n";
  }
  EXPECT_DOUBLE_EQ(sched_counts(root.string()).queued_s, 3.0);
  EXPECT_DOUBLE_EQ(sched_counts("/nowhere").queued_s, 0.0);
  std::filesystem::remove_all(root);
}

TEST(SchedWatch, SaysWhyATimeIsNotToBeTrusted) {
  EXPECT_EQ(describe_sched({.queued_s = 0.01, .involuntary = 10}, 1.0), "");
  EXPECT_EQ(describe_sched({.queued_s = 0.5, .involuntary = 0}, 1.0), "threads waited 50 % of the time for a CPU");
  EXPECT_EQ(describe_sched({.queued_s = 16, .involuntary = 0}, 1.0), "threads waited 100 % of the time for a CPU");
  EXPECT_EQ(describe_sched({.queued_s = 0, .involuntary = 400}, 2.0), "threads were interrupted 200 times a second");
  EXPECT_EQ(describe_sched({.queued_s = 9, .involuntary = 9000}, 0.0), "");
}

TEST(SchedWatch, CountsOnlyWhatIsTimed) {
  SchedWatch watch;
  EXPECT_EQ(watch.thread_s(), 0);
  watch.start();
  watch.stop(4);
  EXPECT_GT(watch.thread_s(), 0);
  EXPECT_LT(watch.counts().queued_s, 100);
}

}  // namespace
}  // namespace ridge
