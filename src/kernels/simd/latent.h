// One row's softmax over one chunk of positions, and the merging of chunks, for vectors of 16 floats: what attention
// over latents needs beside matrix products. See kernels.h for what they compute and simd/math.h for what V is and why
// only templates may stand here.
//
//   {Op::soften, Isa::avx512, Type::F32, kBitAvx512, RIDGE_KERNEL(simd::Latent<Vec>::soften), "…"}
#pragma once

#include <stddef.h>

#include "kernels/kernels.h"
#include "kernels/simd/math.h"

namespace ridge::simd {

template <class V>
struct Latent {
  using F = typename V::F;
  using M = Math<V>;

  // floats(panel, col, count): columns [col, col + count) of a panel as floats [column][16 rows]. Columns are asked for
  // in order, kColumns at a time.
  static constexpr size_t kColumns = 256;
  template <class Floats>
  static void transpose(const TransposeArgs& args, size_t panel_stride, const Floats& floats) {
    for (size_t row = 0; row < args.rows; row += 16) {
      const size_t rows = args.rows - row < 16 ? args.rows - row : 16;
      for (size_t col = 0; col < args.cols; col += kColumns) {
        const size_t columns = args.cols - col < kColumns ? args.cols - col : kColumns;
        const float* values = floats(args.panels + row / 16 * panel_stride, col, columns);
        for (size_t c = 0; c < columns; c += 16) {
          turn_tile(values + 16 * c, rows, args.out + ((col + c) / 16 * args.rows + row) * 16);
        }
      }
    }
  }

  static float soften(float* scores, size_t n, float scale, float* max) {
    const size_t whole = n / 16 * 16, rest = n % 16;
    const F factor = V::set(scale);
    F largest = V::set(-__builtin_inff());
    for (size_t i = 0; i < whole; i += 16) {
      const F s = V::mul(V::load(scores + i), factor);
      V::store(scores + i, s);
      largest = V::max(s, largest);
    }
    float top = V::reduce_max(largest);
    for (size_t i = whole; i < n; ++i) {
      scores[i] = scores[i] * scale;
      top = scores[i] > top ? scores[i] : top;
    }
    const F m = V::set(top);
    F lanes = V::zero();
    for (size_t i = 0; i < whole; i += 16) {
      const F p = M::exp(V::sub(V::load(scores + i), m));
      V::store(scores + i, p);
      lanes = V::add(lanes, p);
    }
    if (rest > 0) {
      const F p = V::first(M::exp(V::sub(V::load(scores + whole, rest), m)), rest);
      V::store(scores + whole, p, rest);
      lanes = V::add(lanes, p);
    }
    *max = top;
    return V::reduce_add(lanes);
  }

  static void merge_chunk(const float* o, size_t n, float max, float sum, float* merged, float* out) {
    if (merged[1] == 0) {
      for (size_t i = 0; i < n; ++i) out[i] = o[i];
      merged[0] = max;
      merged[1] = sum;
      return;
    }
    const float new_max = max > merged[0] ? max : merged[0];
    const float old_factor = exp_one(merged[0] - new_max), new_factor = exp_one(max - new_max);
    const F keep = V::set(old_factor), add = V::set(new_factor);
    for (size_t i = 0; i < n; i += 16) {
      const size_t count = n - i < 16 ? n - i : 16;
      V::store(out + i, V::fma(V::load(out + i, count), keep, V::mul(V::load(o + i, count), add)), count);
    }
    merged[1] = __builtin_fmaf(merged[1], old_factor, sum * new_factor);
    merged[0] = new_max;
  }

 private:
  // out[r · 16 + c] = in[c · 16 + r]
  static inline void turn_tile(const float* in, size_t rows, float* out) {
    size_t r = 0;
    for (; r + 4 <= rows; r += 4) {
      for (size_t c = 0; c < 16; c += 4) V::transpose4(in + 16 * c + r, 16, out + 16 * r + c, 16);
    }
    for (; r < rows; ++r) {
      for (size_t c = 0; c < 16; ++c) out[16 * r + c] = in[16 * c + r];
    }
  }

  static inline float exp_one(float x) {
    float lanes[16];
    V::store(lanes, M::exp(V::set(x)));
    return lanes[0];
  }
};

}  // namespace ridge::simd
