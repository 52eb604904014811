// What this CPU and the operating system grant: ISA features (with the OS's consent checked, not CPUID alone), caches,
// cores. Plain facts; nothing is measured here.
//
// Not for: memory limits (their own file), bandwidths and peaks (probes).
//
//   const CpuInfo& cpu = cpu_info();
//   if (cpu.features.has_all(kAvx512 | kAvx512Vnni)) …
//   ThreadPool pool({.threads = int(usable_cpus().size()), .cpus = usable_cpus()});
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "machine/feature_bits.h"

namespace ridge {

// A set of features; bits so that a kernel's needs are one constant.
struct CpuFeatures {
  uint32_t bits = 0;
  constexpr bool has_all(CpuFeatures needs) const { return (bits & needs.bits) == needs.bits; }
  constexpr CpuFeatures operator|(CpuFeatures other) const { return {bits | other.bits}; }
  constexpr CpuFeatures without(CpuFeatures other) const { return {bits & ~other.bits}; }
};

inline constexpr CpuFeatures kNoFeatures{0}, kAvx2Fma{kBitAvx2Fma}, kAvxVnni{kBitAvxVnni}, kAvx512{kBitAvx512},
    kAvx512Vnni{kBitAvx512Vnni}, kAvx512Vbmi{kBitAvx512Vbmi}, kAvx512Bf16{kBitAvx512Bf16}, kAmxInt8{kBitAmxInt8},
    kAmxBf16{kBitAmxBf16}, kNeon{kBitNeon}, kNeonDot{kBitNeonDot}, kNeonI8mm{kBitNeonI8mm}, kAvx512Fp16{kBitAvx512Fp16},
    kNeonFp16{kBitNeonFp16}, kNeonBf16{kBitNeonBf16}, kAmdPrefetch{kBitAmdPrefetch};

// What people call them: "avx2+fma", "avx512", "vnni", …, in the order of the bits.
std::vector<std::string> feature_names(CpuFeatures features);

struct CpuInfo {
  std::string model;  // as the CPU names itself
  CpuFeatures features;
  std::vector<std::string> feature_names;              // of `features`, for people
  int logical_cpus = 1;                                // online and in this process's affinity mask
  uint64_t l1d_bytes = 0, l2_bytes = 0, l3_bytes = 0;  // per instance; 0 if unknown
};

const CpuInfo& cpu_info();  // read once; thread-safe

// The CPUs that this process may use, in order (its affinity mask, limited by the cgroup's CPU quota rounded up).
std::vector<int> usable_cpus();

// CPUs' worth of time that the cgroup grants (quota / period; the smallest over the process's group and its ancestors,
// v1 and v2), or 0 if nothing limits it. `root` stands before /proc and /sys, so that tests can bring their own.
double cgroup_cpu_quota(const std::string& root = "");

}  // namespace ridge
