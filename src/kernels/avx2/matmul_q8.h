// Matrix products of quantised panels with int8 activations, two registers of 8 rows per panel vector. `Dot` says how 4
// codes and 4 activations are multiplied and summed per lane: avx2/matmul_q8.cpp without, avxvnni/ with the dot product
// instruction. The sums are exact either way.
//
// One token: codes go from the panel to the multiplier through registers. More: a tile's codes are unfolded once into
// 512 bytes of L1 and used for up to 32 tokens, four at a time.
//
//   {Op::matmul_q8, Isa::avx2, Type::Q4_0, kBitAvx2Fma, RIDGE_KERNEL((MatmulQ8<Q4_0, SmallCodes<Q4_0>>::matmul)), "…"}
#pragma once

#include "kernels/avx2/tiles.h"
#include "kernels/kernels.h"

namespace ridge::avx2 {
namespace {

// The activations of one token.
struct Row {
  const int8_t* q;
  const float* d;
  const int32_t* sums;
};

RIDGE_INLINE __m256i broadcast4(const int8_t* p) {
  int32_t word;
  memcpy(&word, p, 4);
  return _mm256_set1_epi32(word);
}

template <class Format, class Dot>
struct MatmulQ8 {
  static constexpr size_t kTokenBlock = 32;
  static constexpr int kGroups = Format::kGroups;
  static constexpr int kGroupQuads = kQuads / kGroups;

  static RIDGE_INLINE int32_t group_sum(const Row& row, size_t tile, int g) {
    if constexpr (kGroups == 2) return row.sums[2 * tile + g];
    return row.sums[2 * tile] + row.sums[2 * tile + 1];
  }

  // acc[t] continued over one tile. get(q): the codes of quad q; s, m: the tile's scales and minima, [kGroups][16].
  template <int Tokens, class Get>
  static RIDGE_INLINE void multiply_tile(Get get, const float* s, const float* m, const Row* rows, size_t tile,
                                         F* acc) {
#pragma GCC unroll 2
    for (int g = 0; g < kGroups; ++g) {
      I dot[Tokens];
      Dot::template accumulate<Tokens, kGroupQuads>(
          [&](int q) __attribute__((always_inline)) { return get(g * kGroupQuads + q); },
          [&](int t, int q)
              __attribute__((always_inline)) { return broadcast4(rows[t].q + 32 * tile + 4 * (g * kGroupQuads + q)); },
          [&](int t)
              __attribute__((always_inline)) { return _mm256_set1_epi32(-Dot::kZero * group_sum(rows[t], tile, g)); },
          dot);
      const F scale = Vec::load(s + 16 * g);
#pragma GCC unroll 4
      for (int t = 0; t < Tokens; ++t) {
        const float d = rows[t].d[tile];
        const F value = {_mm256_cvtepi32_ps(dot[t].low), _mm256_cvtepi32_ps(dot[t].high)};
        acc[t] = Vec::fma(value, Vec::mul(scale, Vec::set(d)), acc[t]);
        if constexpr (Format::kHasMin) {
          const float sum = static_cast<float>(group_sum(rows[t], tile, g));
          acc[t] = Vec::fma(Vec::load(m + 16 * g), Vec::set(d * sum), acc[t]);
        }
      }
    }
  }

  static F one_token(const uint8_t* panel, size_t tiles, const Row& row) {
    F acc = Vec::zero();
    Scales scales;
    for (size_t first = 0; first < tiles; first += Format::kUnitTiles, panel += Format::kUnitBytes) {
      Format::scales(panel, scales);
      const int count = tiles - first < Format::kUnitTiles ? static_cast<int>(tiles - first) : Format::kUnitTiles;
      for (int t = 0; t < count; ++t) {
        multiply_tile<1>(
            [&](int q) __attribute__((always_inline)) { return Format::quad(panel, t, q); }, scales.s[t * kGroups],
            scales.m[t * kGroups], &row, first + static_cast<size_t>(t), &acc);
      }
    }
    return acc;
  }

  // codes: [kQuads][64]. acc: [Tokens][16]. Both go through memory as whole registers; copying the structs would be
  // done in pieces of 16 bytes, which the next load of 32 has to wait for.
  //
  // A function of its own: inlined into the loop over tokens, the codes would live in registers all the way through it
  // and push the sums out.
  template <int Tokens>
  static __attribute__((noinline)) void some_tokens(const uint8_t* codes, const float* s, const float* m,
                                                    const Row* rows, size_t tile, float* acc) {
    F registers[Tokens];
#pragma GCC unroll 4
    for (int t = 0; t < Tokens; ++t) registers[t] = Vec::load(acc + 16 * t);
    multiply_tile<Tokens>(
        [&](int q) __attribute__((always_inline)) { return load(codes + 64 * q); }, s, m, rows, tile, registers);
#pragma GCC unroll 4
    for (int t = 0; t < Tokens; ++t) Vec::store(acc + 16 * t, registers[t]);
  }

  // acc: [tokens][16].
  static void many_tokens(const uint8_t* panel, size_t tiles, const Row* rows, size_t tokens, float* acc) {
    Scales scales;
    alignas(64) uint8_t codes[64 * kQuads];
    for (size_t t = 0; t < tokens; ++t) Vec::store(acc + 16 * t, Vec::zero());
    for (size_t tile = 0; tile < tiles; ++tile) {
      const int in_unit = static_cast<int>(tile % Format::kUnitTiles);
      if (in_unit == 0) Format::scales(panel, scales);
#pragma GCC unroll 8
      for (int q = 0; q < kQuads; ++q) store(codes + 64 * q, Format::quad(panel, in_unit, q));
      const float* s = scales.s[in_unit * kGroups];
      const float* m = scales.m[in_unit * kGroups];
      size_t t = 0;
      for (; t + 4 <= tokens; t += 4) some_tokens<4>(codes, s, m, rows + t, tile, acc + 16 * t);
      for (; t < tokens; ++t) some_tokens<1>(codes, s, m, rows + t, tile, acc + 16 * t);
      if (in_unit + 1 == Format::kUnitTiles) panel += Format::kUnitBytes;
    }
  }

  static RIDGE_INLINE size_t rows_of_panel(const MatmulArgs& args, size_t row) {
    return args.rows - row < kPanelRows ? args.rows - row : kPanelRows;
  }

  static void matmul(const MatmulArgs& args) {
    const size_t tiles = args.cols / 32, panel_bytes = Format::panel_bytes(args.cols);
    for (size_t first = 0; first < args.tokens; first += kTokenBlock) {
      const size_t tokens = args.tokens - first < kTokenBlock ? args.tokens - first : kTokenBlock;
      Row rows[kTokenBlock];
      for (size_t t = 0; t < tokens; ++t) {
        rows[t] = {args.x8.q + (first + t) * args.x8.q_stride, args.x8.d + (first + t) * args.x8.d_stride,
                   args.x8.sums + 2 * ((first + t) * args.x8.d_stride)};
      }
      const uint8_t* panel = args.panels;
      for (size_t row = 0; row < args.rows; row += kPanelRows, panel += panel_bytes) {
        float* out = args.out + first * args.out_stride + row;
        if (tokens == 1) {
          Vec::store(out, one_token(panel, tiles, rows[0]), rows_of_panel(args, row));
          continue;
        }
        alignas(64) float acc[16 * kTokenBlock];
        many_tokens(panel, tiles, rows, tokens, acc);
        for (size_t t = 0; t < tokens; ++t) {
          Vec::store(out + t * args.out_stride, Vec::load(acc + 16 * t), rows_of_panel(args, row));
        }
      }
    }
  }
};

}  // namespace
}  // namespace ridge::avx2
