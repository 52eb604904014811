// Profiles with tiers: those of profiles/ as they are, and what is wrong with changed ones.
#include "sim/npu_machine.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "base/units.h"

namespace ridge::sim {
namespace npu_machine_test {

const std::string kProfiles = RIDGE_TEST_DATA "/../../profiles/";

constexpr const char* kWithTiers[] = {"ethos-u55",   "ethos-u65",    "ethos-u85", "rk3588-npu",
                                      "hexagon-v75", "mediatek-apu", "ane-m4",    "edge-tpu",
                                      "stm32n6",     "xdna-strix",   "a100-l2",   "host-zen5"};

TEST(NpuMachine, TwelveProfilesHaveTiersAndSayWhereTheyAreFrom) {
  for (const char* name : kWithTiers) {
    const auto machine = load_npu_machine(kProfiles + name + ".toml");
    ASSERT_TRUE(machine.ok()) << machine.error().message;
    const NpuMachine& m = machine.value();
    EXPECT_GT(m.room(), 0u) << name;
    // The multipliers' memory is faster than DRAM, and takes less energy.
    EXPECT_GT(m.inner().read_bytes_per_s, m.dram.read_bytes_per_s) << name;
    EXPECT_LT(m.inner().read_j_per_byte, m.dram.read_j_per_byte) << name;
    for (const NpuFigure& f : m.figures) EXPECT_FALSE(f.source.empty()) << name << " " << f.what;
    // What DRAM does without tiers, it does with them.
    const auto profile = load_profile(kProfiles + name + ".toml");
    ASSERT_TRUE(profile.ok()) << profile.error().message;
    EXPECT_DOUBLE_EQ(profile.value().figure("memory_gb_per_s")->value * 1e9, m.dram.read_bytes_per_s) << name;
  }
  EXPECT_FALSE(has_tiers(kProfiles + "raspberry-pi-5.toml").value());
  EXPECT_FALSE(has_tiers(kProfiles + "rk3588-anima.toml").value());
}

std::string said_of(const std::string& text) {
  const std::string path = ::testing::TempDir() + "/npu-changed.toml";
  std::ofstream(path) << text;
  const auto machine = load_npu_machine(path);
  if (machine.ok()) return "";
  EXPECT_EQ(machine.error().code, ErrorCode::bad_input);
  EXPECT_EQ(machine.error().message.find('\n'), std::string::npos) << machine.error().message;
  return machine.error().message;
}

TEST(NpuMachine, RefusesImpossibleNumbersInOneLine) {
  std::ifstream in(kProfiles + "ethos-u85.toml");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(said_of(text), "");
  const char* cases[][3] = {
      {"'read_gb_per_s', value = 24", "'read_gb_per_s', value = -24", "a number above 0 for read_gb_per_s"},
      {"'read_gb_per_s', value = 24", "'read_gb_per_s', value = 0", "a number above 0 for read_gb_per_s"},
      {"'read_gb_per_s', value = 24", "'read_gb_per_s', value = nan", "'tiers[3].figures[2].value' is wrong"},
      {"'read_gb_per_s', value = 24", "'read_gb_per_s', value = inf", "'tiers[3].figures[2].value' is wrong"},
      {"'read_gb_per_s', value = 24", "'read_gb_per_s', value = \"fast\"", "'tiers[3].figures[2].value' is wrong"},
      {"'burst_bytes', value = 128", "'burst_bytes', value = 0", "a whole number from 1 to 2^40 for burst_bytes"},
      {"'burst_bytes', value = 128", "'burst_bytes', value = 1.5", "a whole number from 1 to 2^40 for burst_bytes"},
      {"'burst_bytes', value = 128", "'burst_bytes', value = 96", "a multiple of its bursts"},
      {"'burst_bytes', value = 128", "'burst_bytes', value = 131072", "of 128 KiB or more for each of 2 dma_buffers"},
      {"'bytes', value = 524288", "'bytes', value = 8589934592", "more than the 4.00 GiB of DRAM"},
      {"'bytes', value = 524288", "'bytes', value = 65536", "fit into dedicated SRAM (64.0 KiB)"},
      {"'utilisation', value = 0.5", "'utilisation', value = 1.5", "above 0 and up to 1 for utilisation"},
      {"'dma_buffers', value = 2", "'dma_buffers', value = 0", "for dma_buffers"},
      {"'dma_buffers', value = 2", "'dma_buffers', value = 100000", "dma_buffers of at most 4096"},
      {"'dma_staging_bytes', value = 131072", "'dma_staging_bytes', value = 256", "or more for each of 2 dma_buffers"},
      {"'latency_ns', value = 500", "'latency_ns', value = -1", "a number from 0 on for latency_ns"},
      {"'activate_pj', value = 8448", "'activate_pj', value = -8448", "for activate_pj"},
      {"'mac_pj', value = 0.2", "'mac_pJ', value = 0.2", "one of clock_ghz, macs_per_cycle"},
      {"'clock_ghz', value = 1", "'macs_per_cycle', value = 1", "macs_per_cycle is there twice"},
      {"what = 'row_bytes', value = 8192", "what = 'activate_pj', value = 8192", "activate_pj is there twice"},
      {"kind = 'dram'", "kind = 'shared_sram'", "shared_sram is there twice"},
      {"kind = 'dram'", "kind = 'flash'", "one of registers, local_sram, shared_sram, dram"},
      {"[npu]", "[nqu]", "'npu' is missing"},
      {"status = 'published', source = \"Ethos-U85-256\"", "status = 'sure', source = \"Ethos-U85-256\"",
       "one of published, measured, assumed"},
      {"source = \"Ethos-U85-256\"", "source = \"\"", "source"},
  };
  for (const auto& [from, to, part] : cases) {
    std::string changed = text;
    // The last one: figures of DRAM stand at the end.
    const size_t at = changed.rfind(from);
    ASSERT_NE(at, std::string::npos) << from;
    changed.replace(at, std::string(from).size(), to);
    const std::string said = said_of(changed);
    EXPECT_NE(said.find(part), std::string::npos) << to << ": " << said;
  }
  EXPECT_NE(said_of("tiers = 3").find("format"), std::string::npos);
  EXPECT_FALSE(load_npu_machine(kProfiles).ok());
}

}  // namespace npu_machine_test
}  // namespace ridge::sim
