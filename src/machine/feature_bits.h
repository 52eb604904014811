// The bits of CpuFeatures (cpu.h) as plain numbers, for files that may include plain data only: kernel files are
// compiled with their own ISA flags, where even an inline function of a standard header could end up as the copy that
// is linked.
//
// Not for: anything else. Code outside the ISA folders uses CpuFeatures.
//
//   {Op::quantize, Isa::avx512, Type::F32, kBitAvx512, …}      // an entry that needs AVX-512 F, BW, VL, DQ and CD
#pragma once

#include <stdint.h>

namespace ridge {

enum FeatureBit : uint32_t {
  kBitAvx2Fma = 1u << 0,  // AVX2, FMA, F16C
  kBitAvxVnni = 1u << 1,
  kBitAvx512 = 1u << 2,  // F, BW, VL, DQ, CD
  kBitAvx512Vnni = 1u << 3,
  kBitAvx512Vbmi = 1u << 4,
  kBitAvx512Bf16 = 1u << 5,
  kBitAmxInt8 = 1u << 6,
  kBitAmxBf16 = 1u << 7,
  kBitNeon = 1u << 8,       // Advanced SIMD of Armv8-A: every 64-bit Arm CPU
  kBitNeonDot = 1u << 9,    // SDOT, UDOT
  kBitNeonI8mm = 1u << 10,  // SMMLA, UMMLA, USMMLA, USDOT
  kBitAvx512Fp16 = 1u << 11,
  kBitNeonFp16 = 1u << 12,     // multiply-adds of halves
  kBitNeonBf16 = 1u << 13,     // BFDOT, BFMMLA
  kBitAmdPrefetch = 1u << 14,  // no instruction: prefetchers that follow single load instructions, as AMD's do
};

}  // namespace ridge
