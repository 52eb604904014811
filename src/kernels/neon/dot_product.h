// SDOT: four signed bytes times four, summed into 32 bits, by lanes of the activations' register. Only for files that
// are compiled with +dotprod (neondot/, neoni8mm/).
//
//   MatmulQ8<Q4_0, DotProduct>::matmul(args);
#pragma once

#include "kernels/neon/matmul_q8.h"

namespace ridge::neon {
namespace {

struct DotProduct : QuadEngine<DotProduct> {
  static constexpr int kTokens = 4;  // 16 sums, 4 registers of weights, 8 of activations

  template <int, int first, int count, int Tokens, class Get>
  static RIDGE_INLINE void accumulate(Get get, const int8_t* const* x, Dot* dot) {
    constexpr int kFirst = first / 4, kLast = (first + count - 1) / 4;
    int8x16_t activations[Tokens][2];
    repeat<Tokens>([&]<int t>() __attribute__((always_inline)) {
      activations[t][kFirst] = vld1q_s8(x[t] + 16 * kFirst);
      if constexpr (kLast != kFirst) activations[t][kLast] = vld1q_s8(x[t] + 16 * kLast);
    });
    repeat<count>([&]<int i>() __attribute__((always_inline)) {
      constexpr int q = first + quad_order<count>(i), kLane = q % 4;
      const Weights w = get.template operator()<q>();
      repeat<Tokens>([&]<int t>() __attribute__((always_inline)) {
        dot[t].a = vdotq_laneq_s32(dot[t].a, w.a, activations[t][q / 4], kLane);
        dot[t].b = vdotq_laneq_s32(dot[t].b, w.b, activations[t][q / 4], kLane);
        dot[t].c = vdotq_laneq_s32(dot[t].c, w.c, activations[t][q / 4], kLane);
        dot[t].d = vdotq_laneq_s32(dot[t].d, w.d, activations[t][q / 4], kLane);
      });
    });
  }
};

}  // namespace
}  // namespace ridge::neon
