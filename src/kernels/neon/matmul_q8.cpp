// Matrix products with int8 activations on any 64-bit Arm CPU, such as Cortex-A53 and A72: SMULL and SMLAL multiply
// bytes into 16 bits, one product per lane and quad. As many quads are summed there as cannot overflow: 8 of codes up
// to 31, 4 of codes up to 63, 2 of 8-bit ones; then pairs are widened and added. 19 instructions for 4 rows × 32
// columns of 4-bit codes, where SDOT takes 8.

#include "kernels/neon/matmul_q8.h"

#include "kernels/entries.h"

namespace ridge::neon {
namespace {

struct Widening : QuadEngine<Widening> {
  static constexpr int kTokens = 2;  // 8 sums in 16 bits each

  struct Sums {
    int16x8_t low, high;  // 4 products of each of two rows
  };
  template <bool first>
  static RIDGE_INLINE void multiply(Sums& sums, int8x16_t w, int8x16_t x) {
    if constexpr (first) {
      sums = {vmull_s8(vget_low_s8(w), vget_low_s8(x)), vmull_high_s8(w, x)};
    } else {
      sums = {vmlal_s8(sums.low, vget_low_s8(w), vget_low_s8(x)), vmlal_high_s8(sums.high, w, x)};
    }
  }
  static RIDGE_INLINE int32x4_t widen(const Sums& sums) {
    return vpaddq_s32(vpaddlq_s16(sums.low), vpaddlq_s16(sums.high));
  }

  static RIDGE_INLINE int8x16_t broadcast4(const int8_t* p) {
    int32_t word;
    memcpy(&word, p, 4);
    return vreinterpretq_s8_s32(vdupq_n_s32(word));
  }

  template <int bound, int first, int count, int Tokens, class Get>
  static RIDGE_INLINE void accumulate(Get get, const int8_t* const* x, Dot* dot) {
    constexpr int kFit = bound <= 31 ? 8 : bound <= 63 ? 4 : 2, kStep = kFit < count ? kFit : count;
    static_assert(kFit * bound * 127 <= 32767, "no overflow");
    repeat<count / kStep>([&]<int step>() __attribute__((always_inline)) {
      Sums sums[Tokens][4];
      repeat<kStep>([&]<int i>() __attribute__((always_inline)) {
        constexpr int q = first + quad_order<count>(step * kStep + i);
        const Weights w = get.template operator()<q>();
        repeat<Tokens>([&]<int t>() __attribute__((always_inline)) {
          const int8x16_t activations = broadcast4(x[t] + 4 * q);
          multiply<i == 0>(sums[t][0], w.a, activations);
          multiply<i == 0>(sums[t][1], w.b, activations);
          multiply<i == 0>(sums[t][2], w.c, activations);
          multiply<i == 0>(sums[t][3], w.d, activations);
        });
      });
      repeat<Tokens>([&]<int t>() __attribute__((always_inline)) {
        dot[t] = {dot[t].a + widen(sums[t][0]), dot[t].b + widen(sums[t][1]), dot[t].c + widen(sums[t][2]),
                  dot[t].d + widen(sums[t][3])};
      });
    });
  }
};

}  // namespace

#define RIDGE_NEON_Q8(type) \
  { Op::matmul_q8, Isa::neon, Type::type, kBitNeon, RIDGE_KERNEL((MatmulQ8<type, Widening>::matmul)), "neon" }

const KernelEntry kMatmulQ8Entries[] = {
    RIDGE_NEON_Q8(Q4_0),  RIDGE_NEON_Q8(Q4_1),   RIDGE_NEON_Q8(Q5_0),   RIDGE_NEON_Q8(Q5_1), RIDGE_NEON_Q8(Q8_0),
    RIDGE_NEON_Q8(Q2_K),  RIDGE_NEON_Q8(Q3_K),   RIDGE_NEON_Q8(Q4_K),   RIDGE_NEON_Q8(Q5_K), RIDGE_NEON_Q8(Q6_K),
    RIDGE_NEON_Q8(MXFP4), RIDGE_NEON_Q8(IQ4_NL), RIDGE_NEON_Q8(IQ4_XS),
};
const size_t kMatmulQ8Count = sizeof(kMatmulQ8Entries) / sizeof(kMatmulQ8Entries[0]);

}  // namespace ridge::neon
