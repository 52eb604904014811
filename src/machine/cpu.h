// What this CPU and the operating system grant: ISA features (with the OS's consent checked, not CPUID alone), caches,
// cores. Plain facts; nothing is measured here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ridge {

// A set of features; bits so that a kernel's needs are one constant.
struct CpuFeatures {
  uint32_t bits = 0;
  constexpr bool has_all(CpuFeatures needs) const { return (bits & needs.bits) == needs.bits; }
  constexpr CpuFeatures operator|(CpuFeatures other) const { return {bits | other.bits}; }
};

inline constexpr CpuFeatures kNoFeatures{0}, kAvx2Fma{1u << 0} /* AVX2, FMA, F16C */, kAvxVnni{1u << 1},
    kAvx512{1u << 2} /* F, BW, VL, DQ, CD */, kAvx512Vnni{1u << 3}, kAvx512Vbmi{1u << 4}, kAvx512Bf16{1u << 5},
    kAmxInt8{1u << 6}, kAmxBf16{1u << 7}, kNeonDot{1u << 8}, kNeonI8mm{1u << 9};

struct CpuInfo {
  std::string model;             // as the CPU names itself
  CpuFeatures features;
  std::vector<std::string> feature_names;   // of `features`, for people
  int logical_cpus = 1;          // online and in this process's affinity mask
  uint64_t l1d_bytes = 0, l2_bytes = 0, l3_bytes = 0;   // per instance; 0 if unknown
};

const CpuInfo& cpu_info();       // read once; thread-safe

// The CPUs that this process may use, in order (its affinity mask, limited by the cgroup's CPU quota rounded up).
std::vector<int> usable_cpus();

}  // namespace ridge
