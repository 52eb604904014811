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

#define RIDGE_CLEAR_X(i) "xorps %%xmm" #i ", %%xmm" #i "\n\t"
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
#define RIDGE_BYTES_Z(i)                     \
  "vpmaddubsw %%zmm13, %%zmm12, %%zmm14\n\t" \
  "vpmaddwd %%zmm13, %%zmm14, %%zmm14\n\t"   \
  "vpaddd %%zmm14, %%zmm" #i ", %%zmm" #i "\n\t"
#define RIDGE_BF16_Z(i) "vdpbf16ps %%zmm13, %%zmm12, %%zmm" #i "\n\t"
#define RIDGE_FP16_Z(i) "vfmadd231ph %%zmm13, %%zmm12, %%zmm" #i "\n\t"
#define RIDGE_FMA_Z(i) "vfmadd231ps %%zmm13, %%zmm12, %%zmm" #i "\n\t"
#define RIDGE_FMA_Y(i) "vfmadd231ps %%ymm13, %%ymm12, %%ymm" #i "\n\t"

RIDGE_LOOP(vnni_512, RIDGE_VNNI_Z)
RIDGE_LOOP(vnni_256, RIDGE_VNNI_Y)
RIDGE_LOOP(bytes_512, RIDGE_BYTES_Z)
RIDGE_LOOP(bytes_256, RIDGE_BYTES_Y)
RIDGE_LOOP(bf16_512, RIDGE_BF16_Z)
RIDGE_LOOP(fp16_512, RIDGE_FP16_Z)
RIDGE_LOOP(fma_512, RIDGE_FMA_Z)
RIDGE_LOOP(fma_256, RIDGE_FMA_Y)

// What every x86-64 has: a product and a sum, one number at a time.
#define RIDGE_MUL_ADD(i) "movaps %%xmm12, %%xmm14\n\tmulss %%xmm13, %%xmm14\n\taddss %%xmm14, %%xmm" #i "\n\t"
void float_scalar(uint64_t rounds) {
  __asm__ volatile(RIDGE_TWELVE(RIDGE_CLEAR_X) RIDGE_CLEAR_X(12)
                       RIDGE_CLEAR_X(13) "1:\n\t" RIDGE_TWELVE(RIDGE_MUL_ADD) "decq %0\n\tjnz 1b\n\t"
                   : "+r"(rounds)
                   :
                   : "cc", RIDGE_XMM_CLOBBERS);
}

// An addition takes one cycle: eight sums outrun any number of multipliers.
#define RIDGE_IMUL_ADD(r) "imull $3, %%ecx, %%edx\n\taddl %%edx, %%" #r "\n\t"
constexpr uint64_t kSums = 8;
void int_scalar(uint64_t rounds) {
  __asm__ volatile("xorl %%ecx, %%ecx\n\t1:\n\t" RIDGE_IMUL_ADD(r8d) RIDGE_IMUL_ADD(r9d) RIDGE_IMUL_ADD(r10d)
                       RIDGE_IMUL_ADD(r11d) RIDGE_IMUL_ADD(r12d) RIDGE_IMUL_ADD(r13d) RIDGE_IMUL_ADD(r14d)
                           RIDGE_IMUL_ADD(r15d) "decq %0\n\tjnz 1b\n\t"
                   : "+r"(rounds)
                   :
                   : "cc", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15");
}

// Six of the eight tiles are sums: 6 × 16 cycles are more than the 52 that a product takes.
constexpr uint64_t kTiles = 6;
constexpr uint64_t kTileRows = 16, kTileBytes = 64;  // of every tile: the largest
void configure_tiles() {
  struct alignas(64) Config {  // what LDTILECFG reads
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {};
    uint8_t rows[16] = {};
  } config;
  for (size_t i = 0; i < 8; ++i) config.row_bytes[i] = kTileBytes, config.rows[i] = kTileRows;
  __asm__ volatile("ldtilecfg %0" ::"m"(config));
}
#define RIDGE_ZERO_T(i) "tilezero %%tmm" #i "\n\t"
#define RIDGE_TILE_LOOP(name, instruction)                                                                           \
  void name(uint64_t rounds) {                                                                                       \
    configure_tiles();                                                                                               \
    __asm__ volatile(RIDGE_ZERO_T(0) RIDGE_ZERO_T(1) RIDGE_ZERO_T(2) RIDGE_ZERO_T(3) RIDGE_ZERO_T(4) RIDGE_ZERO_T(5) \
                         RIDGE_ZERO_T(6) RIDGE_ZERO_T(                                                               \
                             7) "1:\n\t" instruction " %%tmm7, %%tmm6, %%tmm0\n\t" instruction                       \
                                " %%tmm7, %%tmm6, %%tmm1\n\t" instruction " %%tmm7, %%tmm6, %%tmm2\n\t" instruction  \
                                " %%tmm7, %%tmm6, %%tmm3\n\t" instruction " %%tmm7, %%tmm6, %%tmm4\n\t" instruction  \
                                " %%tmm7, %%tmm6, %%tmm5\n\t"                                                        \
                                "decq %0\n\tjnz 1b\n\ttilerelease\n\t"                                               \
                     : "+r"(rounds)                                                                                  \
                     :                                                                                               \
                     : "cc");                                                                                        \
  }
RIDGE_TILE_LOOP(tiles_int8, "tdpbssd")
RIDGE_TILE_LOOP(tiles_bf16, "tdpbf16ps")

// Two vector multiply-adds a cycle on every x86 with them, three scalar products of integers, and one product of tiles
// in the sixteen cycles that its rows take.
constexpr double kVectors = 2, kScalars = 3, kTileProducts = 1.0 / kTileRows;
constexpr uint64_t kAll = kAccumulators * 2;  // operations of a round per lane
const ComputeLoop kLoops[] = {
    {"f32", "scalar", kNoFeatures, float_scalar, kAll, kAccumulators, kVectors},
    {"f32", "avx2", kAvx2Fma, fma_256, kAll * 8, kAccumulators, kVectors},
    {"f32", "avx512", kAvx512, fma_512, kAll * 16, kAccumulators, kVectors},
    {"f16", "avx512-fp16", kAvx512 | kAvx512Fp16, fp16_512, kAll * 32, kAccumulators, kVectors},
    {"bf16", "avx512-bf16", kAvx512 | kAvx512Bf16, bf16_512, kAll * 32, kAccumulators, kVectors},
    {"bf16", "amx-bf16", kAmxBf16, tiles_bf16, kTiles * 2 * kTileRows* kTileRows* kTileBytes / 2, kTiles,
     kTileProducts},
    {"int8", "scalar", kNoFeatures, int_scalar, kSums * 2, kSums, kScalars},
    {"int8", "avx2", kAvx2Fma, bytes_256, kAll * 32, kAccumulators, kVectors},  // by the first of three instructions
    {"int8", "avx-vnni", kAvx2Fma | kAvxVnni, vnni_256, kAll * 32, kAccumulators, kVectors},
    {"int8", "avx512", kAvx512, bytes_512, kAll * 64, kAccumulators, kVectors},
    {"int8", "avx512-vnni", kAvx512 | kAvx512Vnni, vnni_512, kAll * 64, kAccumulators, kVectors},
    {"int8", "amx-int8", kAmxInt8, tiles_int8, kTiles * 2 * kTileRows* kTileRows* kTileBytes, kTiles, kTileProducts},
};

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
#define RIDGE_BFMMLA(i) "bfmmla v" #i ".4s, v12.8h, v13.8h\n\t"
#define RIDGE_FMLA(i) "fmla v" #i ".4s, v12.4s, v13.4s\n\t"
#define RIDGE_FMLA_H(i) "fmla v" #i ".8h, v12.8h, v13.8h\n\t"
#define RIDGE_FMADD(i) "fmadd s" #i ", s12, s13, s" #i "\n\t"

RIDGE_LOOP(dot_128, ".arch armv8.2-a+dotprod\n\t", RIDGE_SDOT)
RIDGE_LOOP(matrix_128, ".arch armv8.6-a+i8mm\n\t", RIDGE_SMMLA)
RIDGE_LOOP(bf16_128, ".arch armv8.6-a+bf16\n\t", RIDGE_BFMMLA)
RIDGE_LOOP(fp16_128, ".arch armv8.2-a+fp16\n\t", RIDGE_FMLA_H)
RIDGE_LOOP(fma_128, "", RIDGE_FMLA)
RIDGE_LOOP(float_scalar, "", RIDGE_FMADD)

#define RIDGE_MADD(i) "madd w" #i ", w12, w13, w" #i "\n\t"
void int_scalar(uint64_t rounds) {
  __asm__ volatile("mov w12, #0\n\tmov w13, #0\n\t1:\n\t" RIDGE_TWELVE(RIDGE_MADD) "subs %0, %0, #1\n\tb.ne 1b\n\t"
                   : "+r"(rounds)
                   :
                   : "cc", "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13");
}

constexpr double kWidest = 4;                 // multiply-adds a cycle on the widest cores
constexpr uint64_t kAll = kAccumulators * 2;  // operations of a round per lane
const ComputeLoop kLoops[] = {
    {"f32", "scalar", kNoFeatures, float_scalar, kAll, kAccumulators, kWidest},
    {"f32", "neon", kNeon, fma_128, kAll * 4, kAccumulators, kWidest},
    {"f16", "neon-fp16", kNeonFp16, fp16_128, kAll * 8, kAccumulators, kWidest},
    // 2 × 4 by 4 × 2, and 2 × 8 by 8 × 2.
    {"bf16", "neon-bf16", kNeonBf16, bf16_128, kAll * 16, kAccumulators, kWidest},
    {"int8", "scalar", kNoFeatures, int_scalar, kAll, kAccumulators, kWidest},
    {"int8", "neon-dot", kNeonDot, dot_128, kAll * 16, kAccumulators, kWidest},
    {"int8", "neon-i8mm", kNeonI8mm, matrix_128, kAll * 32, kAccumulators, kWidest},
};

#endif

}  // namespace

#if defined(__x86_64__) || defined(__aarch64__)
std::span<const ComputeLoop> compute_loops() { return kLoops; }
#else
std::span<const ComputeLoop> compute_loops() { return {}; }
#endif

const ComputeLoop* find_loop(std::string_view type, std::string_view isa) {
  for (const ComputeLoop& loop : compute_loops()) {
    if (loop.type == type && loop.isa == isa) return &loop;
  }
  return nullptr;
}

ComputeLoop best_loop(std::string_view type, CpuFeatures features) {
  ComputeLoop best;
  for (const ComputeLoop& loop : compute_loops()) {
    if (loop.type == type && features.has_all(loop.needs)) best = loop;
  }
  return best;
}

double most_operations_per_cycle(const ComputeLoop& loop) {
  if (loop.instructions == 0) return 0;
  return loop.per_cycle * static_cast<double>(loop.operations) / static_cast<double>(loop.instructions);
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
