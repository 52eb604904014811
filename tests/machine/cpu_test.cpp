#include "machine/cpu.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace ridge {
namespace {

// A folder that plays / for one test.
class CgroupQuota : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ =
        std::filesystem::path(::testing::TempDir()) / ("ridge_cpu_" + std::to_string(::getpid()) + "_" +
                                                       ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path full = root_ / path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << text;
  }
  double quota() const { return cgroup_cpu_quota(root_.string()); }

  static constexpr const char* kV2Mount =
      "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
  static constexpr const char* kV1Mount =
      "31 23 0:27 / /sys/fs/cgroup/cpu,cpuacct rw shared:5 - cgroup cgroup rw,cpu,cpuacct\n"
      "32 23 0:28 / /sys/fs/cgroup/cpuset rw shared:6 - cgroup cgroup rw,cpuset\n";

  std::filesystem::path root_;
};

TEST_F(CgroupQuota, NothingMountedMeansNoLimit) { EXPECT_EQ(quota(), 0); }

TEST_F(CgroupQuota, V2TakesTheSmallestOfGroupAndAncestors) {
  write("proc/self/mountinfo", kV2Mount);
  write("proc/self/cgroup", "0::/a/b/c\n");
  write("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  write("sys/fs/cgroup/a/b/c/cpu.max", "400000 100000\n");
  EXPECT_DOUBLE_EQ(quota(), 1.5);
  write("sys/fs/cgroup/a/b/c/cpu.max", "50000 100000\n");
  EXPECT_DOUBLE_EQ(quota(), 0.5);
}

TEST_F(CgroupQuota, V2WithoutLimitOrWithNonsenseIsUnlimited) {
  write("proc/self/mountinfo", kV2Mount);
  write("proc/self/cgroup", "0::/a\n");
  write("sys/fs/cgroup/a/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), 0);
  for (const char* text : {"", "\n", "12", "x y", "100000 0", "-1 100000", "0 100000"}) {
    write("sys/fs/cgroup/a/cpu.max", text);
    EXPECT_EQ(quota(), 0) << "'" << text << "'";
  }
}

TEST_F(CgroupQuota, V1ReadsTheCpuHierarchyOnly) {
  write("proc/self/mountinfo", kV1Mount);
  write("proc/self/cgroup", "4:memory:/elsewhere\n3:cpuset:/set\n2:cpu,cpuacct:/docker/x\n");
  write("sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 0);
  write("sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_quota_us", "250000\n");
  write("sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_period_us", "100000\n");
  EXPECT_DOUBLE_EQ(quota(), 2.5);
}

TEST_F(CgroupQuota, ContainerWhoseMountShowsItsOwnSubtree) {
  write("proc/self/mountinfo", "31 23 0:27 /docker/x /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n");
  write("proc/self/cgroup", "2:cpu:/docker/x/inner\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "300000\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  write("sys/fs/cgroup/cpu/inner/cpu.cfs_quota_us", "20000\n");
  write("sys/fs/cgroup/cpu/inner/cpu.cfs_period_us", "100000\n");
  EXPECT_DOUBLE_EQ(quota(), 0.2);
  write("proc/self/cgroup", "2:cpu:/../..\n");
  EXPECT_DOUBLE_EQ(quota(), 3.0);
}

TEST_F(CgroupQuota, BothVersionsAtOnceTakeTheSmaller) {
  write("proc/self/mountinfo", std::string(kV1Mount) + "40 23 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  write("proc/self/cgroup", "2:cpu,cpuacct:/g\n0::/g\n");
  write("sys/fs/cgroup/unified/g/cpu.max", "700000 100000\n");
  write("sys/fs/cgroup/cpu,cpuacct/g/cpu.cfs_quota_us", "600000\n");
  write("sys/fs/cgroup/cpu,cpuacct/g/cpu.cfs_period_us", "100000\n");
  EXPECT_DOUBLE_EQ(quota(), 6.0);
}

TEST(Cpu, FeaturesAgreeWithWhatTheCompilerFinds) {
#if defined(__x86_64__)
  const CpuFeatures features = cpu_info().features;
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  EXPECT_EQ(features.has_all(kAvx2Fma), avx2);
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512cd");
  EXPECT_EQ(features.has_all(kAvx512), avx512);
  EXPECT_EQ(features.has_all(kAvx512 | kAvx512Vnni), avx512 && __builtin_cpu_supports("avx512vnni"));
#endif
}

TEST(Cpu, InfoIsPlausible) {
  const CpuInfo& info = cpu_info();
  EXPECT_FALSE(info.model.empty());
  EXPECT_GE(info.logical_cpus, 1);
  EXPECT_EQ(info.feature_names, feature_names(info.features));
  if (info.l1d_bytes > 0 && info.l2_bytes > 0) {
    EXPECT_LT(info.l1d_bytes, info.l2_bytes);
  }
}

TEST(Cpu, UsableCpusAreOrderedAndFollowTheAffinity) {
  const std::vector<int> cpus = usable_cpus();
  ASSERT_FALSE(cpus.empty());
  EXPECT_TRUE(std::is_sorted(cpus.begin(), cpus.end()));
  EXPECT_LE(cpus.size(), static_cast<size_t>(cpu_info().logical_cpus));

  std::thread bound([&] {  // affinity is per thread, so the test program keeps its own
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<size_t>(cpus.back()), &set);
    ASSERT_EQ(sched_setaffinity(0, sizeof(set), &set), 0);
    EXPECT_EQ(usable_cpus(), std::vector<int>{cpus.back()});
  });
  bound.join();
}

TEST(Cpu, FeatureSetsCombine) {
  EXPECT_TRUE((kAvx2Fma | kAvx512).has_all(kAvx2Fma));
  EXPECT_FALSE(kAvx2Fma.has_all(kAvx2Fma | kAvx512));
  EXPECT_TRUE(kNoFeatures.has_all(kNoFeatures));
  EXPECT_EQ(feature_names(kAvx2Fma | kNeonDot), (std::vector<std::string>{"avx2+fma", "neon-dot"}));
}

}  // namespace
}  // namespace ridge
