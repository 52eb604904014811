#include "machine/system_facts.h"

#include <gtest/gtest.h>

#include "base/units.h"
#include "tests/machine/fake_root.h"

namespace ridge {
namespace {

class SystemFactsTest : public test::FakeRootFolder {};

TEST_F(SystemFactsTest, NothingReadableIsNothing) {
  const SystemFacts f = system_facts(root());
  EXPECT_FALSE(f.kernel || f.swap_total || f.overcommit || f.io_uring_disabled || f.huge_pages || f.online_cpus);
  EXPECT_FALSE(f.pressure.memory || f.address_limit);
  EXPECT_TRUE(f.governors.empty());
  EXPECT_EQ(f.container, "");
}

TEST_F(SystemFactsTest, ReadsWhatIsThere) {
  put("proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
  put("proc/sys/kernel/io_uring_disabled", "2\n");
  put("proc/sys/kernel/sched_autogroup_enabled", "1\n");
  put("proc/sys/vm/overcommit_memory", "2\n");
  put("proc/sys/vm/max_map_count", "65530\n");
  put("proc/meminfo", "SwapTotal: 2000 kB\nSwapFree: 500 kB\nCommitLimit: 9000 kB\nCommitted_AS: 4000 kB\n");
  put("proc/self/limits",
      "Limit                     Soft Limit           Hard Limit           Units\n"
      "Max locked memory         8388608              8388608              bytes\n"
      "Max address space         4294967296           unlimited            bytes\n");
  put("proc/pressure/memory",
      "some avg10=1.25 avg60=0.50 avg300=0.10 total=9\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n");
  put("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  put("sys/devices/system/cpu/online", "0-3,8\n");
  for (int cpu : {0, 1, 2})
    put("sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cpufreq/scaling_governor",
        cpu == 2 ? "performance\n" : "powersave\n");
  put("proc/cpuinfo", "processor\t: 0\nmodel name\t: X\nflags\t\t: fpu avx512f amx_tile amx_int8\n\n");
  const SystemFacts f = system_facts(root());
  EXPECT_EQ(f.kernel, "6.1.0-18-amd64");
  EXPECT_EQ(f.io_uring_disabled, 2u);
  EXPECT_EQ(f.autogroup, 1u);
  EXPECT_EQ(f.overcommit, 2u);
  EXPECT_EQ(f.most_mappings, 65530u);
  EXPECT_EQ(f.swap_used, 1500 * kKiB);
  EXPECT_EQ(f.commit_limit, 9000 * kKiB);
  EXPECT_EQ(f.address_limit, 4 * kGiB);
  EXPECT_DOUBLE_EQ(f.pressure.memory.value_or(0), 1.25);
  EXPECT_FALSE(f.pressure.cpu.has_value());
  EXPECT_EQ(f.huge_pages, "madvise");
  EXPECT_EQ(f.online_cpus, 5u);
  ASSERT_EQ(f.governors.size(), 2u);
  EXPECT_EQ(f.governors[0].name, "powersave");
  EXPECT_EQ(f.governors[0].cpus, 2u);
  EXPECT_TRUE(f.cpu_has_amx);
}

TEST_F(SystemFactsTest, DamagedFilesSayNothing) {
  put("proc/sys/vm/overcommit_memory", "");
  put("proc/pressure/memory", "some avg10=x");
  put("sys/kernel/mm/transparent_hugepage/enabled", "]always[");
  put("sys/devices/system/cpu/online", "3-1");
  put("proc/cpuinfo", "flags\t: amx_tiled");
  put("proc/self/limits", "Max address space         unlimited            unlimited            bytes\n");
  const SystemFacts f = system_facts(root());
  EXPECT_FALSE(f.overcommit || f.pressure.memory || f.huge_pages || f.online_cpus || f.address_limit || f.cpu_has_amx);
}

TEST_F(SystemFactsTest, ContainersAreKnownByTheirTraces) {
  put("proc/1/cgroup", "0::/kubepods/burstable/pod1\n");
  EXPECT_EQ(system_facts(root()).container, "kubernetes");
  put("proc/version", "Linux version 5.15 (Microsoft@Microsoft.com)\n");
  EXPECT_EQ(system_facts(root()).container, "wsl");
  put("run/systemd/container", "lxc\n");
  EXPECT_EQ(system_facts(root()).container, "lxc");
  put("run/.containerenv", "");
  EXPECT_EQ(system_facts(root()).container, "podman");
  put(".dockerenv", "");
  EXPECT_EQ(system_facts(root()).container, "docker");
}

TEST(CpusInList, CountsRanges) {
  EXPECT_EQ(cpus_in_list("0"), 1u);
  EXPECT_EQ(cpus_in_list("0-63"), 64u);
  EXPECT_EQ(cpus_in_list("0,2-3,8"), 4u);
  for (const char* wrong : {"", "a", "1-", "2-1", "1;2", "1,,2"})
    EXPECT_FALSE(cpus_in_list(wrong).has_value()) << wrong;
}

}  // namespace
}  // namespace ridge
