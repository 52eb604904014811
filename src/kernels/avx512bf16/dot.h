// BF16 weights × activations rounded to bf16 with vdpbf16ps: two products and two additions per lane, twice the
// arithmetic of f32 where the CPU has it at full rate (some are slower than with f32: kernels/measure.h decides).
//
// Not for: the default numerics (fast/bf16_product.h says why).
#pragma once

#include <immintrin.h>

#include "kernels/fast/bf16_product.h"

namespace ridge::avx512bf16 {
namespace {

inline __m512bh as_pairs(__m512i v) { return reinterpret_cast<__m512bh>(v); }

struct Dot {
  static constexpr size_t kTokens = 12;  // × two panels: 24 accumulators
  static constexpr bool kHasOneToken = true;

  static void block(const fast::Bf16Block<kTokens>& b) {
    __m512 acc[2][kTokens];
#pragma GCC unroll 2
    for (size_t p = 0; p < 2; ++p) {
#pragma GCC unroll 12
      for (size_t t = 0; t < kTokens; ++t) acc[p][t] = _mm512_load_ps(b.c[p][t]);
    }
    for (size_t k = 0; k < b.pairs; ++k) {
      const __m512i w0 = _mm512_load_si512(b.w[0] + 16 * k), w1 = _mm512_load_si512(b.w[1] + 16 * k);
#pragma GCC unroll 12
      for (size_t t = 0; t < kTokens; ++t) {
        const __m512bh x = as_pairs(pair(b.x + t * fast::kBf16Columns + 2 * k));
        acc[0][t] = _mm512_dpbf16_ps(acc[0][t], as_pairs(w0), x);
        acc[1][t] = _mm512_dpbf16_ps(acc[1][t], as_pairs(w1), x);
      }
    }
#pragma GCC unroll 2
    for (size_t p = 0; p < 2; ++p) {
#pragma GCC unroll 12
      for (size_t t = 0; t < kTokens; ++t) _mm512_store_ps(b.c[p][t], acc[p][t]);
    }
  }

  // Bound by memory: the pairs are made in registers, four panels side by side to hide the latency of the chain.
  static void one_token(const MatmulArgs& args) {
    constexpr size_t kPanels = 4;
    const size_t stride = fast::bf16_panel_stride(args.cols);
    const uint8_t* panel = args.panels;
    size_t row = 0;
    for (; row + 16 * (kPanels - 1) < args.rows; row += 16 * kPanels, panel += kPanels * stride) {
      panels<kPanels>(args, panel, stride, row);
    }
    for (; row < args.rows; row += 16, panel += stride) panels<1>(args, panel, stride, row);
  }

 private:
  static __m512i pair(const uint16_t* x) {
    int word;
    __builtin_memcpy(&word, x, 4);
    return _mm512_set1_epi32(word);
  }

  // Columns 2 k and 2 k + 1 of 16 rows, [2][16], to [16][2].
  static __m512i interleaved(__m512i columns) {
    alignas(64) static constexpr uint16_t kOrder[32] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                                        8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    return _mm512_permutexvar_epi16(_mm512_load_si512(kOrder), columns);
  }

  template <size_t count>
  static void panels(const MatmulArgs& args, const uint8_t* first, size_t stride, size_t row) {
    constexpr size_t kPrefetchBytes = 1024;
    __m512 acc[count];
#pragma GCC unroll 4
    for (size_t p = 0; p < count; ++p) acc[p] = _mm512_setzero_ps();
    for (size_t c = 0; c < args.cols; c += 2) {
      const bool whole = c + 1 < args.cols;
      const uint16_t x[2] = {f32_to_bf16(args.x[c]), whole ? f32_to_bf16(args.x[c + 1]) : uint16_t{0}};
      const __m512bh activations = as_pairs(pair(x));
      const __mmask16 mask = whole ? 0xffff : 0x00ff;
#pragma GCC unroll 4
      for (size_t p = 0; p < count; ++p) {
        const uint8_t* at = first + p * stride + 32 * c;
        _mm_prefetch(reinterpret_cast<const char*>(at) + kPrefetchBytes, _MM_HINT_T0);
        acc[p] = _mm512_dpbf16_ps(acc[p], as_pairs(interleaved(_mm512_maskz_loadu_epi32(mask, at))), activations);
      }
    }
#pragma GCC unroll 4
    for (size_t p = 0; p < count; ++p) {
      const size_t r = row + 16 * p;
      const __mmask16 mask = static_cast<__mmask16>(args.rows - r >= 16 ? 0xffffu : (1u << (args.rows - r)) - 1);
      _mm512_mask_storeu_ps(args.out + r, mask, acc[p]);
    }
  }
};

}  // namespace
}  // namespace ridge::avx512bf16
