#include "machine/compute_loop.h"

#include <algorithm>
#include <chrono>

// Twelve accumulators: more than latency × throughput of any multiply-add here (5 cycles × 2 a cycle on x86, 4 × 2 on
// Arm), and few enough for 16 registers with two operands. The assembler takes every instruction, whatever the flags of
// this file: only the caller knows that the CPU has them.
//
// RIDGE_TWELVE(x) is x once for each of the registers 0 … 11.
#define RIDGE_TWELVE(x) x(0) x(1) x(2) x(3) x(4) x(5) x(6) x(7) x(8) x(9) x(10) x(11)

namespace ridge {
namespace {

constexpr uint64_t kAccumulators = 12;

#if defined(__x86_64__)

#define RIDGE_CLEAR_Y(i) "vpxor %%ymm" #i ", %%ymm" #i ", %%ymm" #i "\n\t"
#define RIDGE_XMM_CLOBBERS                                                                                            \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", \
      "xmm14", "xmm15"

// All registers are zero: zeros take as long as other numbers. Registers beyond 15 are not used, so that the clobbers
// are known to compilers that were not asked for AVX-512.
#define RIDGE_LOOP(name, step)                                                                               \
  void name(uint64_t rounds) {                                                                               \
    __asm__ volatile(RIDGE_TWELVE(RIDGE_CLEAR_Y) RIDGE_CLEAR_Y(12)                                           \
                         RIDGE_CLEAR_Y(13) "1:\n\t" RIDGE_TWELVE(step) "decq %0\n\tjnz 1b\n\tvzeroupper\n\t" \
                     : "+r"(rounds)                                                                          \
                     :                                                                                       \
                     : "cc", RIDGE_XMM_CLOBBERS);                                                            \
  }

#define RIDGE_VNNI_Z(i) "vpdpbusd %%zmm13, %%zmm12, %%zmm" #i "\n\t"
#define RIDGE_VNNI_Y(i) "%{vex%} vpdpbusd %%ymm13, %%ymm12, %%ymm" #i "\n\t"
// Without VNNI a product of bytes is three instructions: pairs to words, words to doublewords, and the sum.
#define RIDGE_BYTES_Y(i)                     \
  "vpmaddubsw %%ymm13, %%ymm12, %%ymm14\n\t" \
  "vpmaddwd %%ymm13, %%ymm14, %%ymm14\n\t"   \
  "vpaddd %%ymm14, %%ymm" #i ", %%ymm" #i "\n\t"
#define RIDGE_BF16_Z(i) "vdpbf16ps %%zmm13, %%zmm12, %%zmm" #i "\n\t"
#define RIDGE_FMA_Z(i) "vfmadd231ps %%zmm13, %%zmm12, %%zmm" #i "\n\t"
#define RIDGE_FMA_Y(i) "vfmadd231ps %%ymm13, %%ymm12, %%ymm" #i "\n\t"

RIDGE_LOOP(vnni_512, RIDGE_VNNI_Z)
RIDGE_LOOP(vnni_256, RIDGE_VNNI_Y)
RIDGE_LOOP(bytes_256, RIDGE_BYTES_Y)
RIDGE_LOOP(bf16_512, RIDGE_BF16_Z)
RIDGE_LOOP(fma_512, RIDGE_FMA_Z)
RIDGE_LOOP(fma_256, RIDGE_FMA_Y)

#elif defined(__aarch64__)

#define RIDGE_CLEAR_V(i) "movi v" #i ".4s, #0\n\t"
#define RIDGE_LOOP(name, arch, step)                                                                                  \
  void name(uint64_t rounds) {                                                                                        \
    __asm__ volatile(arch RIDGE_TWELVE(RIDGE_CLEAR_V) RIDGE_CLEAR_V(12)                                               \
                         RIDGE_CLEAR_V(13) "1:\n\t" RIDGE_TWELVE(step) "subs %0, %0, #1\n\tb.ne 1b\n\t"               \
                     : "+r"(rounds)                                                                                   \
                     :                                                                                                \
                     : "cc", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13"); \
  }

#define RIDGE_SDOT(i) "sdot v" #i ".4s, v12.16b, v13.16b\n\t"
#define RIDGE_SMMLA(i) "smmla v" #i ".4s, v12.16b, v13.16b\n\t"
#define RIDGE_FMLA(i) "fmla v" #i ".4s, v12.4s, v13.4s\n\t"

RIDGE_LOOP(dot_128, ".arch armv8.2-a+dotprod\n\t", RIDGE_SDOT)
RIDGE_LOOP(matrix_128, ".arch armv8.6-a+i8mm\n\t", RIDGE_SMMLA)
RIDGE_LOOP(fma_128, "", RIDGE_FMLA)

#endif

}  // namespace

ComputeLoop int8_loop([[maybe_unused]] CpuFeatures features) {
#if defined(__x86_64__)
  if (features.has_all(kAvx512 | kAvx512Vnni)) return {vnni_512, kAccumulators * 2 * 64, kAccumulators};
  if (features.has_all(kAvxVnni)) return {vnni_256, kAccumulators * 2 * 32, kAccumulators};
  if (features.has_all(kAvx2Fma))
    return {bytes_256, kAccumulators * 2 * 32, kAccumulators};  // the first of its three instructions
#elif defined(__aarch64__)
  // A 2 × 8 by 8 × 2 product is 32 multiply-adds.
  if (features.has_all(kNeonI8mm)) return {matrix_128, kAccumulators * 2 * 32, kAccumulators};
  if (features.has_all(kNeonDot)) return {dot_128, kAccumulators * 2 * 16, kAccumulators};
#endif
  return {};
}

ComputeLoop float_loop([[maybe_unused]] CpuFeatures features) {
#if defined(__x86_64__)
  if (features.has_all(kAvx512)) return {fma_512, kAccumulators * 2 * 16, kAccumulators};
  if (features.has_all(kAvx2Fma)) return {fma_256, kAccumulators * 2 * 8, kAccumulators};
#elif defined(__aarch64__)
  return {fma_128, kAccumulators * 2 * 4, kAccumulators};
#endif
  return {};
}

ComputeLoop bf16_loop([[maybe_unused]] CpuFeatures features) {
#if defined(__x86_64__)
  if (features.has_all(kAvx512 | kAvx512Bf16)) return {bf16_512, kAccumulators * 2 * 32, kAccumulators};
#endif
  return {};
}

// Two vector multiply-adds a cycle on every x86 with them; four on the widest Arm cores.
double most_operations_per_cycle(const ComputeLoop& loop) {
#if defined(__aarch64__)
  constexpr double kPorts = 4;
#else
  constexpr double kPorts = 2;
#endif
  if (loop.instructions == 0) return 0;
  return kPorts * static_cast<double>(loop.operations) / static_cast<double>(loop.instructions);
}

double measure_clock_ghz() {
  constexpr uint64_t kRounds = 50'000;
  constexpr int kTries = 7, kAdds = 32;
  double best = 0;
  for (int t = 0; t < kTries; ++t) {
    const auto begin = std::chrono::steady_clock::now();
    [[maybe_unused]] uint64_t value = 1;
    [[maybe_unused]] uint64_t rounds = kRounds;
#if defined(__x86_64__)
    __asm__ volatile("1:\n\t.rept 32\n\taddq %%rdx, %0\n\t.endr\n\tdecq %1\n\tjnz 1b\n\t"
                     : "+r"(value), "+r"(rounds)
                     :
                     : "cc", "rdx");
#elif defined(__aarch64__)
    __asm__ volatile("1:\n\t.rept 32\n\tadd %0, %0, %0\n\t.endr\n\tsubs %1, %1, #1\n\tb.ne 1b\n\t"
                     : "+r"(value), "+r"(rounds)
                     :
                     : "cc");
#else
    return 0;
#endif
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    best = std::max(best, static_cast<double>(kRounds * kAdds) / seconds * 1e-9);
  }
  return best;
}

}  // namespace ridge
