// Matrix products with int8 activations for CPUs with SMMLA (Armv8.6 i8mm: Cortex-A510, A710, Neoverse V1, N2 and
// later, Apple M2 and later): 2 × 8 bytes times 8 × 2 bytes into 2 × 2 sums, twice the products of an SDOT. One token
// has no second row to fill it with and takes SDOT.

#include "kernels/entries.h"
#include "kernels/neon/dot_product.h"

namespace ridge::neoni8mm {
namespace {

using neon::Dot;
using neon::kQuads;
using neon::repeat;

// Weights of a tile: [octet of columns][pair of rows][row][column], 16 bytes to a pair.
struct MatrixMultiply : neon::DotProduct {
  static constexpr int kTokens = 4;  // two pairs of tokens × eight pairs of rows: 16 sums
  static constexpr int kLeastTokens = 2;

  static RIDGE_INLINE int8x16_t first_rows(int8x16_t even, int8x16_t odd) {
    return vreinterpretq_s8_s32(vzip1q_s32(vreinterpretq_s32_s8(even), vreinterpretq_s32_s8(odd)));
  }
  static RIDGE_INLINE int8x16_t last_rows(int8x16_t even, int8x16_t odd) {
    return vreinterpretq_s8_s32(vzip2q_s32(vreinterpretq_s32_s8(even), vreinterpretq_s32_s8(odd)));
  }
  template <class Format, int t>
  static RIDGE_INLINE void unfold(const uint8_t* unit, int8_t* tile) {
    repeat<kQuads / 2>([&]<int octet>() __attribute__((always_inline)) {
      const neon::Weights even = neon::Signed<Format>::template weights<t, 2 * octet>(unit);
      const neon::Weights odd = neon::Signed<Format>::template weights<t, 2 * octet + 1>(unit);
      int8_t* p = tile + 128 * octet;
      neon::store_weights(p, {first_rows(even.a, odd.a), last_rows(even.a, odd.a), first_rows(even.b, odd.b),
                              last_rows(even.b, odd.b)});
      neon::store_weights(p + 64, {first_rows(even.c, odd.c), last_rows(even.c, odd.c), first_rows(even.d, odd.d),
                                   last_rows(even.d, odd.d)});
    });
  }

  static RIDGE_INLINE int8x16_t low_halves(int8x16_t x, int8x16_t y) {
    return vreinterpretq_s8_s64(vzip1q_s64(vreinterpretq_s64_s8(x), vreinterpretq_s64_s8(y)));
  }
  static RIDGE_INLINE int8x16_t high_halves(int8x16_t x, int8x16_t y) {
    return vreinterpretq_s8_s64(vzip2q_s64(vreinterpretq_s64_s8(x), vreinterpretq_s64_s8(y)));
  }
  static RIDGE_INLINE int32x4_t low_halves(int32x4_t x, int32x4_t y) {
    return vreinterpretq_s32_s64(vzip1q_s64(vreinterpretq_s64_s32(x), vreinterpretq_s64_s32(y)));
  }
  static RIDGE_INLINE int32x4_t high_halves(int32x4_t x, int32x4_t y) {
    return vreinterpretq_s32_s64(vzip2q_s64(vreinterpretq_s64_s32(x), vreinterpretq_s64_s32(y)));
  }

  template <int, int first, int count, int Tokens>
  static RIDGE_INLINE void dots(const int8_t* tile, const int8_t* const* x, Dot* dot) {
    constexpr int kPairs = Tokens / 2;
    int32x4_t sums[kPairs][8];  // [token][row] of a pair of rows in four lanes
    for (int pair = 0; pair < kPairs; ++pair) {
      for (int rows = 0; rows < 8; ++rows) sums[pair][rows] = vdupq_n_s32(0);
    }
    repeat<count / 4>([&]<int i>() __attribute__((always_inline)) {  // 16 columns at a time
      constexpr int kHalf = first / 4 + i;
      int8x16_t even[kPairs], odd[kPairs];  // octets of two tokens
      repeat<kPairs>([&]<int pair>() __attribute__((always_inline)) {
        const int8x16_t a = vld1q_s8(x[2 * pair] + 16 * kHalf), b = vld1q_s8(x[2 * pair + 1] + 16 * kHalf);
        even[pair] = low_halves(a, b);
        odd[pair] = high_halves(a, b);
      });
      repeat<16>([&]<int r>() __attribute__((always_inline)) {
        const int8x16_t w = vld1q_s8(tile + 256 * kHalf + 16 * r);
        repeat<kPairs>([&]<int pair>() __attribute__((always_inline)) {
          sums[pair][r % 8] = vmmlaq_s32(sums[pair][r % 8], r < 8 ? even[pair] : odd[pair], w);
        });
      });
    });
    repeat<kPairs>([&]<int pair>() __attribute__((always_inline)) {
      const auto& s = sums[pair];
      dot[2 * pair] = {low_halves(s[0], s[1]), low_halves(s[2], s[3]), low_halves(s[4], s[5]), low_halves(s[6], s[7])};
      dot[2 * pair + 1] = {high_halves(s[0], s[1]), high_halves(s[2], s[3]), high_halves(s[4], s[5]),
                           high_halves(s[6], s[7])};
    });
  }
};

template <class Format>
void matmul(const MatmulArgs& args) {
  neon::MatmulQ8<Format, MatrixMultiply>::matmul(args);
}

}  // namespace

#define RIDGE_NEONI8MM_Q8(type)                                                                                    \
  {                                                                                                                \
    Op::matmul_q8, Isa::neon, Type::type, kBitNeon | kBitNeonDot | kBitNeonI8mm, RIDGE_KERNEL(matmul<neon::type>), \
        "neon i8mm"                                                                                                \
  }

const KernelEntry kMatmulQ8Entries[] = {
    RIDGE_NEONI8MM_Q8(Q4_0),   RIDGE_NEONI8MM_Q8(Q4_1), RIDGE_NEONI8MM_Q8(Q5_0),  RIDGE_NEONI8MM_Q8(Q5_1),
    RIDGE_NEONI8MM_Q8(Q8_0),   RIDGE_NEONI8MM_Q8(Q2_K), RIDGE_NEONI8MM_Q8(Q3_K),  RIDGE_NEONI8MM_Q8(Q4_K),
    RIDGE_NEONI8MM_Q8(Q5_K),   RIDGE_NEONI8MM_Q8(Q6_K), RIDGE_NEONI8MM_Q8(MXFP4), RIDGE_NEONI8MM_Q8(IQ4_NL),
    RIDGE_NEONI8MM_Q8(IQ4_XS),
};
const size_t kMatmulQ8Count = sizeof(kMatmulQ8Entries) / sizeof(kMatmulQ8Entries[0]);

}  // namespace ridge::neoni8mm
