#include "machine/memory_limits.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/units.h"

namespace ridge {
namespace {

namespace fs = std::filesystem;

// A false root folder with the files that a test gives it.
class FakeRoot : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("ridge-limits-" + std::to_string(::getpid()) + "-" +
                                         ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  void put(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  void meminfo(uint64_t kib) {
    put("proc/meminfo",
        "MemTotal:       32000000 kB\nMemFree:        1000000 kB\nMemAvailable:   " + std::to_string(kib) + " kB\n");
  }
  void v2_mount(const std::string& mount_root = "/", const std::string& at = "/sys/fs/cgroup") {
    put("proc/self/mountinfo", "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/root rw\n31 22 0:26 " + mount_root +
                                   " " + at + " rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
  }
  void v1_mount(const std::string& mount_root = "/") {
    put("proc/self/mountinfo", "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n35 31 0:32 " +
                                   mount_root +
                                   " /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
                                   "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n");
    fs::create_directories(root_ / "sys/fs/cgroup/unified");
  }
  void v2_group(const std::string& folder, const std::string& max, const std::string& high, uint64_t current,
                uint64_t inactive_file = 0, uint64_t slab_reclaimable = 0) {
    put(folder + "/memory.max", max + "\n");
    put(folder + "/memory.high", high + "\n");
    put(folder + "/memory.current", std::to_string(current) + "\n");
    put(folder + "/memory.stat", "anon 5\ninactive_file " + std::to_string(inactive_file) + "\nslab_reclaimable " +
                                     std::to_string(slab_reclaimable) + "\nslab 99\n");
  }
  void v1_group(const std::string& folder, uint64_t limit, uint64_t usage, uint64_t inactive_file,
                uint64_t hierarchical = 9223372036854771712u) {
    put(folder + "/memory.limit_in_bytes", std::to_string(limit) + "\n");
    put(folder + "/memory.usage_in_bytes", std::to_string(usage) + "\n");
    put(folder + "/memory.stat", "cache 1\ninactive_file 7\nhierarchical_memory_limit " + std::to_string(hierarchical) +
                                     "\ntotal_cache 1\ntotal_inactive_file " + std::to_string(inactive_file) + "\n");
  }
  MemoryLimits limits() { return memory_limits(root_.string()); }

  fs::path root_;
};

TEST_F(FakeRoot, MemAvailableAlone) {
  meminfo(2'000'000);
  EXPECT_EQ(limits().available, 2'000'000 * kKiB);
  EXPECT_NE(limits().reason.find("MemAvailable"), std::string::npos) << limits().reason;
}

TEST_F(FakeRoot, MemFreeOnOldKernels) {
  put("proc/meminfo", "MemTotal: 10 kB\nMemFree: 5 kB\n");
  EXPECT_EQ(limits().available, 5 * kKiB);
}

TEST_F(FakeRoot, NothingReadablePromisesNothing) {
  EXPECT_EQ(limits().available, 0u);
  EXPECT_NE(limits().reason.find("--memory"), std::string::npos);
}

TEST_F(FakeRoot, V2CountsReclaimablePagesAsFree) {
  meminfo(20'000'000);
  v2_mount();
  put("proc/self/cgroup", "0::/box\n");
  v2_group("sys/fs/cgroup/box", std::to_string(512 * kMiB), "max", 300 * kMiB, 100 * kMiB, 20 * kMiB);
  EXPECT_EQ(limits().available, 332 * kMiB);
  EXPECT_NE(limits().reason.find("/sys/fs/cgroup/box: 512 MiB limit, 180 MiB"), std::string::npos) << limits().reason;
}

TEST_F(FakeRoot, V2HighCountsLikeALimit) {
  meminfo(20'000'000);
  v2_mount();
  put("proc/self/cgroup", "0::/box\n");
  v2_group("sys/fs/cgroup/box", std::to_string(512 * kMiB), std::to_string(256 * kMiB), 56 * kMiB);
  EXPECT_EQ(limits().available, 200 * kMiB);
  EXPECT_NE(limits().reason.find("high mark"), std::string::npos) << limits().reason;
}

TEST_F(FakeRoot, V2AncestorIsTighter) {
  meminfo(20'000'000);
  v2_mount();
  put("proc/self/cgroup", "0::/user.slice/deep/box\n");
  v2_group("sys/fs/cgroup/user.slice/deep/box", std::to_string(4 * kGiB), "max", 10 * kMiB);
  v2_group("sys/fs/cgroup/user.slice/deep", "max", "max", 10 * kMiB);
  v2_group("sys/fs/cgroup/user.slice", std::to_string(kGiB), "max", 900 * kMiB);  // neighbours use most of it
  EXPECT_EQ(limits().available, 124 * kMiB);
  EXPECT_NE(limits().reason.find("/sys/fs/cgroup/user.slice:"), std::string::npos) << limits().reason;
}

TEST_F(FakeRoot, UsageAboveTheLimitLeavesNothing) {
  meminfo(20'000'000);
  v2_mount();
  put("proc/self/cgroup", "0::/box\n");
  v2_group("sys/fs/cgroup/box", std::to_string(512 * kMiB), "max", 600 * kMiB);
  EXPECT_EQ(limits().available, 0u);
}

TEST_F(FakeRoot, MemAvailableMayBeTheTightest) {
  meminfo(100 * 1024);
  v2_mount();
  put("proc/self/cgroup", "0::/box\n");
  v2_group("sys/fs/cgroup/box", std::to_string(512 * kMiB), "max", 0);
  EXPECT_EQ(limits().available, 100 * kMiB);
}

TEST_F(FakeRoot, ContainerSeesItsOwnGroupAtTheMountPoint) {
  meminfo(20'000'000);
  v2_mount("/docker/abc");
  // The host's path is given, nothing of it is visible here.
  put("proc/self/cgroup", "0::/docker/abc\n");
  v2_group("sys/fs/cgroup", std::to_string(256 * kMiB), "max", 6 * kMiB);
  EXPECT_EQ(limits().available, 250 * kMiB);
}

TEST_F(FakeRoot, ContainerWithAForeignPathUsesTheMountPoint) {
  meminfo(20'000'000);
  v2_mount("/");
  put("proc/self/cgroup", "0::/../../kubepods/pod1\n");
  v2_group("sys/fs/cgroup", std::to_string(256 * kMiB), "max", 56 * kMiB);
  EXPECT_EQ(limits().available, 200 * kMiB);
}

TEST_F(FakeRoot, BelowTheContainersMount) {
  meminfo(20'000'000);
  v2_mount("/docker/abc");
  put("proc/self/cgroup", "0::/docker/abc/inner\n");
  v2_group("sys/fs/cgroup", std::to_string(256 * kMiB), "max", 6 * kMiB);
  v2_group("sys/fs/cgroup/inner", std::to_string(100 * kMiB), "max", 1 * kMiB);
  EXPECT_EQ(limits().available, 99 * kMiB);
}

TEST_F(FakeRoot, MountPointWithABlank) {
  meminfo(20'000'000);
  v2_mount("/", "/sys/fs/my\\040groups");
  put("proc/self/cgroup", "0::/box\n");
  v2_group("sys/fs/my groups/box", std::to_string(64 * kMiB), "max", 4 * kMiB);
  EXPECT_EQ(limits().available, 60 * kMiB);
}

TEST_F(FakeRoot, V1WithAncestors) {
  meminfo(20'000'000);
  v1_mount();
  put("proc/self/cgroup", "4:memory:/a/b\n1:cpu:/x\n0::/\n");
  v1_group("sys/fs/cgroup/memory/a/b", 9223372036854771712u, 50 * kMiB, 0);
  v1_group("sys/fs/cgroup/memory/a", 512 * kMiB, 300 * kMiB, 88 * kMiB);
  v1_group("sys/fs/cgroup/memory", 9223372036854771712u, 5 * kGiB, 0);
  EXPECT_EQ(limits().available, 300 * kMiB);
  EXPECT_NE(limits().reason.find("/sys/fs/cgroup/memory/a:"), std::string::npos) << limits().reason;
}

TEST_F(FakeRoot, V1HiddenAncestorLimitsThroughTheStatFile) {
  meminfo(20'000'000);
  v1_mount("/docker/abc");
  put("proc/self/cgroup", "4:memory:/docker/abc\n");
  v1_group("sys/fs/cgroup/memory", 9223372036854771712u, 30 * kMiB, 10 * kMiB, 120 * kMiB);
  EXPECT_EQ(limits().available, 100 * kMiB);
}

TEST_F(FakeRoot, V1WithoutHierarchyStopsAtTheParent) {
  meminfo(20'000'000);
  v1_mount();
  put("proc/self/cgroup", "4:memory:/a/b\n");
  v1_group("sys/fs/cgroup/memory/a/b", 512 * kMiB, 12 * kMiB, 0);
  v1_group("sys/fs/cgroup/memory/a", 64 * kMiB, 0, 0);
  put("sys/fs/cgroup/memory/a/memory.use_hierarchy", "0\n");
  EXPECT_EQ(limits().available, 500 * kMiB);
}

TEST_F(FakeRoot, ConventionalPlacesWithoutMountinfo) {
  meminfo(20'000'000);
  put("proc/self/cgroup", "4:memory:/box\n");
  v1_group("sys/fs/cgroup/memory/box", 128 * kMiB, 28 * kMiB, 0);
  EXPECT_EQ(limits().available, 100 * kMiB);
}

TEST_F(FakeRoot, GarbageIsNoLimit) {
  meminfo(1000);
  put("proc/self/mountinfo", "\n- - -\n31 22 0:26 / /sys/fs/cgroup rw -\nx\n31 22 0:26 / /g rw - cgroup2 cgroup2 rw\n");
  put("proc/self/cgroup", "nonsense\n0::\n::\n0:memory:relative\n");
  put("g/memory.max", "lots\n");
  put("g/memory.current", "");
  EXPECT_EQ(limits().available, 1000 * kKiB);
}

TEST_F(FakeRoot, LockedLimit) {
  meminfo(1000);
  put("proc/self/limits",
      "Limit                     Soft Limit           Hard Limit           Units\n"
      "Max locked memory         8388608              8388608              bytes\n");
  EXPECT_EQ(limits().locked_limit, 8388608u);
  put("proc/self/limits", "Max locked memory         unlimited            unlimited            bytes\n");
  EXPECT_EQ(limits().locked_limit, UINT64_MAX);
}

TEST_F(FakeRoot, ProcessMemory) {
  put("proc/self/status",
      "Name:\tridge\nVmHWM:\t    300 kB\nVmRSS:\t    200 kB\nRssAnon:\t    150 kB\nVmPTE:\t     44 kB\n");
  put("usr/bin/ridge", std::string(1000, 'x'));
  put("usr/lib/a b.so", std::string(500, 'x'));
  put("proc/self/maps",
      "00400000-00401000 r--p 00000000 fe:00 11                     /usr/bin/ridge\n"
      "00401000-00402000 r-xp 00001000 fe:00 11                     /usr/bin/ridge\n"
      "01000000-01100000 rw-p 00000000 00:00 0                      [heap]\n"
      "7f0000000000-7f0000001000 r--p 00000000 fe:00 12             /usr/lib/a b.so\n"
      "7f0000002000-7f0000004000 r--p 00000000 fe:00 13             /gone (deleted)\n"
      "7f0000005000-7f0000006000 rw-p 00000000 00:00 0 \n");
  ProcessMemory memory = process_memory(root_.string());
  EXPECT_EQ(memory.resident, 200 * kKiB);
  EXPECT_EQ(memory.peak_resident, 300 * kKiB);
  EXPECT_EQ(memory.anonymous, 150 * kKiB);
  EXPECT_EQ(memory.page_tables, 44 * kKiB);
  EXPECT_EQ(memory.mapped_files, 1000u + 500u + 0x2000u);
}

TEST_F(FakeRoot, CgroupPeak) {
  v2_mount();
  put("proc/self/cgroup", "0::/box\n");
  put("sys/fs/cgroup/box/memory.peak", "12345\n");
  EXPECT_EQ(cgroup_peak(root_.string()), 12345u);
  v1_mount();
  put("proc/self/cgroup", "4:memory:/box\n");
  put("sys/fs/cgroup/memory/box/memory.max_usage_in_bytes", "777\n");
  EXPECT_EQ(cgroup_peak(root_.string()), 777u);
}

TEST_F(FakeRoot, CgroupPeakUnknown) { EXPECT_EQ(cgroup_peak(root_.string()), 0u); }

TEST(MemoryLimits, ThisMachine) {
  MemoryLimits limits = memory_limits();
  EXPECT_GT(limits.available, 0u);
  EXPECT_FALSE(limits.reason.empty());
  ProcessMemory memory = process_memory();
  EXPECT_GT(memory.resident, 0u);
  EXPECT_GE(memory.peak_resident, memory.resident);
  EXPECT_GE(memory.resident, memory.anonymous);
  EXPECT_GT(memory.mapped_files, 0u);
}

TEST_F(FakeRoot, PressureOfVersionTwo) {
  meminfo(500);
  v2_mount();
  put("proc/self/cgroup", "0::/a/b\n");
  put("sys/fs/cgroup/a/memory.events", "low 0\nhigh 2\nmax 3\noom 0\n");
  put("sys/fs/cgroup/a/b/memory.events", "low 9\nhigh 0\nmax 10\noom 0\n");
  put("sys/fs/cgroup/a/b/memory.pressure", "some avg10=9.00 avg60=0.00\nfull avg10=7.50 avg60=1.00 total=1\n");
  put("proc/pressure/memory", "some avg10=90.00 avg60=0.00\nfull avg10=1.25 avg60=1.00 total=1\n");
  const MemoryPressure p = memory_pressure(root_.string());
  EXPECT_EQ(p.available, 500 * kKiB);
  EXPECT_EQ(p.limit_hits, 15u);
  EXPECT_DOUBLE_EQ(p.stalled, 0.075);
  EXPECT_FALSE(p.cgroup_left) << "no limit";
  put("sys/fs/cgroup/a/memory.max", "1000000\n");
  put("sys/fs/cgroup/a/memory.current", "900000\n");
  put("sys/fs/cgroup/a/memory.stat", "inactive_file 300000\n");
  EXPECT_EQ(memory_pressure(root_.string()).cgroup_left, 400000u);
}

TEST_F(FakeRoot, PressureOfVersionOneAndOfNothing) {
  EXPECT_FALSE(memory_pressure(root_.string()).available);
  EXPECT_EQ(memory_pressure(root_.string()).limit_hits, 0u);
  EXPECT_EQ(memory_pressure(root_.string()).stalled, 0);
  v1_mount();
  put("proc/self/cgroup", "5:memory:/box\n");
  put("sys/fs/cgroup/memory/memory.failcnt", "1\n");
  put("sys/fs/cgroup/memory/box/memory.failcnt", "41\n");
  put("proc/pressure/memory", "full avg10=nonsense\n");
  EXPECT_EQ(memory_pressure(root_.string()).limit_hits, 42u);
  EXPECT_EQ(memory_pressure(root_.string()).stalled, 0);
}

}  // namespace
}  // namespace ridge
