// Matrix products with int8 activations without a dot product instruction: vpmaddubsw multiplies unsigned by signed
// bytes and adds pairs in 16 bits, with saturation, so the contract (exact dots) needs care:
//  - codes up to 129: a pair is at most 129 · 127 · 2 = 32,766; as many quads are summed in 16 bits as fit (8 of 4-bit
//    codes, 4 of 5-bit, 2 of 6-bit; of codes up to 129 one), then vpmaddwd by ones widens.
//  - 8-bit codes (zero at 128) as signed weights w: |w| times sign(w) · x, at most 128 · 127 · 2 = 32,512 a pair, or
//    |x| times sign(x) · w.
// That x is never −128 is part of the contract of quantising.

#include "kernels/avx2/matmul_q8.h"

#include "kernels/avx2/low_bit_tiles.h"
#include "kernels/entries.h"

namespace ridge::avx2 {
namespace {

RIDGE_INLINE __m256i widen(__m256i pairs) { return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)); }

// The sum is computed here and now, in a register. Otherwise g++ puts additions off until the sum is used, or makes
// trees of them, and either way keeps all products until then: in memory, as there are not that many registers.
RIDGE_INLINE void settle(I& sum) { __asm__("" : "+x"(sum.low), "+x"(sum.high)); }

// Codes that are at most 129.
template <class Format>
struct SmallCodes {
  static constexpr int kZero = Format::kZero;
  // Quads summed in 16 bits.
  static constexpr int kFit = Format::kLargest <= 15 ? 8 : Format::kLargest <= 31 ? 4 : Format::kLargest <= 63 ? 2 : 1;
  static_assert(kFit * Format::kLargest * 127 * 2 <= 32767, "no saturation");

  // dot[p * Tokens + t]: start(t) + Σ over the quads of codes(p, q) · activations(t, q).
  template <int Panels, int Tokens, int Quads, class Codes, class Activations, class Start>
  static RIDGE_INLINE void accumulate(Codes codes, Activations activations, Start start, I* dot) {
    constexpr int kStep = kFit < Quads ? kFit : Quads;
#pragma GCC unroll 8
    for (int first = 0; first < Quads; first += kStep) {
      I sum[Panels * Tokens];
#pragma GCC unroll 8
      for (int q = first; q < first + kStep; ++q) {
#pragma GCC unroll 2
        for (int p = 0; p < Panels; ++p) {
          const I c = codes(p, q);
#pragma GCC unroll 4
          for (int t = 0; t < Tokens; ++t) {
            const __m256i x = activations(t, q);
            const I pairs = {_mm256_maddubs_epi16(c.low, x), _mm256_maddubs_epi16(c.high, x)};
            I& s = sum[p * Tokens + t];
            if (q == first) {
              s = pairs;
            } else {
              s = {_mm256_add_epi16(s.low, pairs.low), _mm256_add_epi16(s.high, pairs.high)};
              settle(s);
            }
          }
        }
      }
#pragma GCC unroll 8
      for (int i = 0; i < Panels * Tokens; ++i) {
        const I before = first == 0 ? I{start(i % Tokens), start(i % Tokens)} : dot[i];
        dot[i] = {_mm256_add_epi32(before.low, widen(sum[i].low)), _mm256_add_epi32(before.high, widen(sum[i].high))};
      }
    }
  }
};

// Codes of 8 bits whose zero is 128, as signed weights w. Product(w, x): pairs of w · x in 16 bits.
template <class Format, __m256i (*Product)(__m256i, __m256i)>
struct SignedCodes {
  static_assert(Format::kZero == 128, "flipping the sign bit gives the weight");
  static constexpr int kZero = 0;

  template <int Panels, int Tokens, int Quads, class Codes, class Activations, class Start>
  static RIDGE_INLINE void accumulate(Codes codes, Activations activations, Start /*start*/, I* dot) {
    const __m256i flip = _mm256_set1_epi8(-128);
#pragma GCC unroll 8
    for (int q = 0; q < Quads; ++q) {
#pragma GCC unroll 2
      for (int p = 0; p < Panels; ++p) {
        const I c = codes(p, q);
        const I w = {_mm256_xor_si256(c.low, flip), _mm256_xor_si256(c.high, flip)};
#pragma GCC unroll 4
        for (int t = 0; t < Tokens; ++t) {
          const __m256i x = activations(t, q);
          const I products = {widen(Product(w.low, x)), widen(Product(w.high, x))};
          I& sum = dot[p * Tokens + t];
          if (q == 0) {
            sum = products;  // signed weights need no start
          } else {
            sum = {_mm256_add_epi32(sum.low, products.low), _mm256_add_epi32(sum.high, products.high)};
            settle(sum);
          }
        }
      }
    }
  }
};

// |w| times sign(w) · x: w may be −128.
RIDGE_INLINE __m256i by_weight(__m256i w, __m256i x) {
  return _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
}
// |x| times sign(x) · w: one magnitude for all rows. For w from a table, which has no −128.
RIDGE_INLINE __m256i by_activation(__m256i w, __m256i x) {
  return _mm256_maddubs_epi16(_mm256_abs_epi8(x), _mm256_sign_epi8(w, x));
}

template <class Format>
using ByteCodes = SignedCodes<Format, by_weight>;
template <class Format>
using TableCodes = SignedCodes<Format, by_activation>;

}  // namespace

#define RIDGE_AVX2_Q8(type, codes) \
  { Op::matmul_q8, Isa::avx2, Type::type, kBitAvx2Fma, RIDGE_KERNEL((MatmulQ8<type, codes<type>>::matmul)), "avx2" }

const KernelEntry kMatmulQ8Entries[] = {
    RIDGE_AVX2_Q8(Q4_0, SmallCodes),    RIDGE_AVX2_Q8(Q4_1, SmallCodes),   RIDGE_AVX2_Q8(Q5_0, SmallCodes),
    RIDGE_AVX2_Q8(Q5_1, SmallCodes),    RIDGE_AVX2_Q8(Q8_0, ByteCodes),    RIDGE_AVX2_Q8(Q2_K, SmallCodes),
    RIDGE_AVX2_Q8(Q3_K, SmallCodes),    RIDGE_AVX2_Q8(Q4_K, SmallCodes),   RIDGE_AVX2_Q8(Q5_K, SmallCodes),
    RIDGE_AVX2_Q8(Q6_K, SmallCodes),    RIDGE_AVX2_Q8(IQ4_NL, TableCodes), RIDGE_AVX2_Q8(IQ4_XS, TableCodes),
    RIDGE_AVX2_Q8(MXFP4, SmallCodes),   RIDGE_AVX2_Q8(IQ1_S, SmallCodes),  RIDGE_AVX2_Q8(IQ1_M, SmallCodes),
    RIDGE_AVX2_Q8(IQ2_XXS, SmallCodes), RIDGE_AVX2_Q8(IQ2_XS, SmallCodes), RIDGE_AVX2_Q8(IQ2_S, SmallCodes),
    RIDGE_AVX2_Q8(IQ3_XXS, SmallCodes), RIDGE_AVX2_Q8(IQ3_S, SmallCodes),  RIDGE_AVX2_Q8(TQ1_0, SmallCodes),
    RIDGE_AVX2_Q8(TQ2_0, SmallCodes),
};
const size_t kMatmulQ8Count = sizeof(kMatmulQ8Entries) / sizeof(kMatmulQ8Entries[0]);

}  // namespace ridge::avx2
