#include "machine/memory_state.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "base/units.h"
#include "tests/machine/fake_root.h"

namespace ridge {
namespace {

class MemoryStateTest : public test::FakeRootFolder {};

TEST_F(MemoryStateTest, ReadsWhatTheKernelSays) {
  put("proc/self/smaps_rollup",
      "5600-7fff ---p 00000000 00:00 0    [rollup]\nRss:    9000 kB\nPss:    8100 kB\nPss_Dirty: 7 kB\n");
  put("proc/self/status", "Name: ridge\nVmRSS:   9000 kB\nVmPTE:    48 kB\n");
  put("proc/meminfo",
      "MemTotal: 100 kB\nMemFree: 5 kB\nMemAvailable: 70000 kB\nSwapTotal: 1000 kB\nSwapFree: 400 kB\n");
  put("proc/self/maps",
      "00400000-00402000 r-xp 00000000 fe:00 12 /bin/ridge\n7f0000000000-7f0000200000 rw-p 00000000 00:00 "
      "0\nnonsense\n");
  const MemoryState s = memory_state(root());
  EXPECT_EQ(s.pss, 8100 * kKiB);
  EXPECT_FALSE(s.pss_is_rss);
  EXPECT_EQ(s.charge(), 8148 * kKiB);
  EXPECT_EQ(s.available, 70000 * kKiB);
  EXPECT_EQ(s.swap_used, 600 * kKiB);
  EXPECT_EQ(s.mappings, 2u);
  EXPECT_EQ(s.mapped_bytes, 8 * kKiB + 2 * kMiB);
}

TEST_F(MemoryStateTest, WithoutARollupTheResidentSizeStandsIn) {
  put("proc/self/status", "VmRSS:   9000 kB\n");
  const MemoryState s = memory_state(root());
  EXPECT_EQ(s.pss, 9000 * kKiB);
  EXPECT_TRUE(s.pss_is_rss);
}

TEST_F(MemoryStateTest, NothingReadableIsNothing) {
  const MemoryState s = memory_state(root());
  EXPECT_EQ(s.pss, 0u);
  EXPECT_FALSE(s.available || s.swap_used || s.cgroup.charged || s.cgroup.left);
  EXPECT_FALSE(growth(s.available, s.available).has_value());
}

TEST_F(MemoryStateTest, TheCgroupsChargeAndWhatItLeaves) {
  put("proc/self/mountinfo", "31 22 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  put("proc/self/cgroup", "0::/box\n");
  put("sys/fs/cgroup/box/memory.max", std::to_string(512 * kMiB) + "\n");
  put("sys/fs/cgroup/box/memory.current", std::to_string(300 * kMiB) + "\n");
  put("sys/fs/cgroup/box/memory.stat", "inactive_file " + std::to_string(100 * kMiB) + "\n");
  const CgroupMemory g = cgroup_memory(root());
  EXPECT_EQ(g.charged, 300 * kMiB);
  EXPECT_EQ(g.left, 312 * kMiB);
  EXPECT_NE(g.reason.find("512 MiB limit"), std::string::npos) << g.reason;
  put("sys/fs/cgroup/box/memory.max", "max\n");
  EXPECT_EQ(cgroup_memory(root()).charged, 300 * kMiB);
  EXPECT_FALSE(cgroup_memory(root()).left.has_value());
}

TEST(MemoryStateOfThisProcess, GrowsWithWhatIsTouched) {
  const MemoryState before = memory_state();
  constexpr size_t kBytes = 24 * kMiB;
  void* map = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  ASSERT_NE(map, MAP_FAILED);
  const MemoryState after = memory_state();
  ::munmap(map, kBytes);
  // The share of libraries changes when programs that use them come and go.
  EXPECT_GE(growth(before.pss, after.pss), static_cast<int64_t>(kBytes - 8 * kMiB));
  EXPECT_GE(growth(before.mapped_bytes, after.mapped_bytes), static_cast<int64_t>(kBytes));
  EXPECT_LT(memory_state().pss, after.pss - kBytes / 3);
}

}  // namespace
}  // namespace ridge
