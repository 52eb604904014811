// Matrix products with int8 activations for CPUs with AVX2 and its dot product instruction (AVX-VNNI: Alder Lake, Zen 5
// and later): four unsigned codes times four signed activations, summed into 32 bits without saturation.

#include "kernels/avx2/matmul_q8.h"
#include "kernels/avx2/low_bit_tiles.h"
#include "kernels/entries.h"

namespace ridge::avxvnni {
namespace {

using avx2::I;

template <class Format>
struct DotProduct {
  static constexpr int kZero = Format::kZero;

  template <int Panels, int Tokens, int Quads, class Codes, class Activations, class Start>
  static RIDGE_INLINE void accumulate(Codes codes, Activations activations, Start start, I* dot) {
#pragma GCC unroll 8
    for (int i = 0; i < Panels * Tokens; ++i) dot[i] = {start(i % Tokens), start(i % Tokens)};
#pragma GCC unroll 8
    for (int q = 0; q < Quads; ++q) {
#pragma GCC unroll 2
      for (int p = 0; p < Panels; ++p) {
        const I c = codes(p, q);
#pragma GCC unroll 4
        for (int t = 0; t < Tokens; ++t) {
          const __m256i x = activations(t, q);
          I& sum = dot[p * Tokens + t];
          sum = {_mm256_dpbusd_avx_epi32(sum.low, c.low, x), _mm256_dpbusd_avx_epi32(sum.high, c.high, x)};
        }
      }
    }
  }
};

template <class Format>
void matmul(const MatmulArgs& args) {
  avx2::MatmulQ8<Format, DotProduct<Format>>::matmul(args);
}

}  // namespace

#define RIDGE_AVXVNNI_Q8(type) \
  { Op::matmul_q8, Isa::avx2, Type::type, kBitAvx2Fma | kBitAvxVnni, RIDGE_KERNEL(matmul<avx2::type>), "avx2 vnni" }

const KernelEntry kMatmulQ8Entries[] = {
    RIDGE_AVXVNNI_Q8(Q4_0),   RIDGE_AVXVNNI_Q8(Q4_1),  RIDGE_AVXVNNI_Q8(Q5_0),    RIDGE_AVXVNNI_Q8(Q5_1),
    RIDGE_AVXVNNI_Q8(Q8_0),   RIDGE_AVXVNNI_Q8(Q2_K),  RIDGE_AVXVNNI_Q8(Q3_K),    RIDGE_AVXVNNI_Q8(Q4_K),
    RIDGE_AVXVNNI_Q8(Q5_K),   RIDGE_AVXVNNI_Q8(Q6_K),  RIDGE_AVXVNNI_Q8(MXFP4),   RIDGE_AVXVNNI_Q8(IQ4_NL),
    RIDGE_AVXVNNI_Q8(IQ4_XS), RIDGE_AVXVNNI_Q8(IQ1_S), RIDGE_AVXVNNI_Q8(IQ1_M),   RIDGE_AVXVNNI_Q8(IQ2_XXS),
    RIDGE_AVXVNNI_Q8(IQ2_XS), RIDGE_AVXVNNI_Q8(IQ2_S), RIDGE_AVXVNNI_Q8(IQ3_XXS), RIDGE_AVXVNNI_Q8(IQ3_S),
    RIDGE_AVXVNNI_Q8(TQ1_0),  RIDGE_AVXVNNI_Q8(TQ2_0),
};
const size_t kMatmulQ8Count = sizeof(kMatmulQ8Entries) / sizeof(kMatmulQ8Entries[0]);

}  // namespace ridge::avxvnni
