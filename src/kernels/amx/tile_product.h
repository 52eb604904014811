// The walk of a block of tokens × two panels over eight matrix tiles of 16 rows × 64 bytes: four sums (two of tokens ×
// two panels), two of activations, two of weights. `Instructions` are AMX's, or a test's imitation of them:
//   static void begin(); static void end();
//   template <int tile> static void load(const void* base, size_t row_bytes), store(void* base, size_t row_bytes);
//   template <int sums, int activations, int weights> static void dot();
#pragma once

#include "kernels/fast/bf16_product.h"

namespace ridge::amx {
namespace {

template <class Instructions>
struct TileProduct {
  static constexpr size_t kTokens = 32;

  static void block(const fast::Bf16Block<kTokens>& b) {
    using I = Instructions;
    constexpr size_t kActivations = sizeof(uint16_t) * fast::kBf16Columns, kLine = 64;
    I::begin();
    I::template load<0>(b.c[0][0], kLine);
    I::template load<1>(b.c[0][16], kLine);
    I::template load<2>(b.c[1][0], kLine);
    I::template load<3>(b.c[1][16], kLine);
    for (size_t k = 0; k < b.pairs; k += fast::kPairStep) {
      I::template load<4>(b.x + 2 * k, kActivations);
      I::template load<5>(b.x + 16 * fast::kBf16Columns + 2 * k, kActivations);
      I::template load<6>(b.w[0] + 16 * k, kLine);
      I::template load<7>(b.w[1] + 16 * k, kLine);
      I::template dot<0, 4, 6>();
      I::template dot<1, 5, 6>();
      I::template dot<2, 4, 7>();
      I::template dot<3, 5, 7>();
    }
    I::template store<0>(b.c[0][0], kLine);
    I::template store<1>(b.c[0][16], kLine);
    I::template store<2>(b.c[1][0], kLine);
    I::template store<3>(b.c[1][16], kLine);
    I::end();
  }
};

}  // namespace
}  // namespace ridge::amx
