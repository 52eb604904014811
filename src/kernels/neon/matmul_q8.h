// Matrix products of quantised panels with int8 activations. `Engine` says how 4 codes and 4 activations per lane are
// multiplied and summed: neon/matmul_q8.cpp with widening multiplications, neondot/ with SDOT, neoni8mm/ with SMMLA.
// All sums are exact. Weights enter as signed bytes: codes up to 127 as they are, 8-bit codes (zero at 128) with their
// top bit flipped; so SDOT serves every type, and USDOT would save that flip and nothing else.
//
// One token: codes go from the panel to the multiplier through registers. More: 16 tiles of the activations of up to 32
// tokens are gathered, so that rows of 4 KiB do not compete for the same lines of a 4-way L1; a tile's weights are
// unfolded once into 512 bytes and used for all of them.
//
//   {Op::matmul_q8, Isa::neon, Type::Q4_0, kBitNeon, RIDGE_KERNEL((MatmulQ8<Q4_0, Widening>::matmul)), "neon"}
#pragma once

#include "kernels/kernels.h"
#include "kernels/neon/tiles.h"

namespace ridge::neon {
namespace {

using Dot = Vec::I;  // one int32 per row

// Signed bytes; lanes as in Codes.
struct Weights {
  int8x16_t a, b, c, d;
};

RIDGE_INLINE Weights load_weights(const int8_t* p) {
  return {vld1q_s8(p), vld1q_s8(p + 16), vld1q_s8(p + 32), vld1q_s8(p + 48)};
}
RIDGE_INLINE void store_weights(int8_t* p, Weights w) {
  vst1q_s8(p, w.a);
  vst1q_s8(p + 16, w.b);
  vst1q_s8(p + 32, w.c);
  vst1q_s8(p + 48, w.d);
}
RIDGE_INLINE Dot set_dot(int32_t value) {
  const int32x4_t v = vdupq_n_s32(value);
  return {v, v, v, v};
}

// What formats mean to an engine.
template <class Format>
struct Signed {
  static constexpr bool kFlipped = Format::kZero == 128;            // code ^ 0x80 is the weight
  static constexpr int kStart = kFlipped ? 0 : Format::kZero;       // else Σ code · q − kStart · Σ q is the dot
  static constexpr int kBound = kFlipped ? 128 : Format::kLargest;  // of magnitudes
  static_assert(kFlipped || (Format::kLargest <= 127 && Format::kZero <= Format::kLargest), "codes are signed bytes");

  static RIDGE_INLINE int8x16_t flip(uint8x16_t x, uint8_t zero) { return vreinterpretq_s8_u8(x - vdupq_n_u8(zero)); }

  // Codes of tile t, quad q, as the signed numbers nearest at hand: code, or code − 128.
  template <int t, int q>
  static RIDGE_INLINE Weights codes(const uint8_t* unit) {
    const Codes c = Format::template quad<t, q>(unit);
    if constexpr (kFlipped) return {flip(c.a, 128), flip(c.b, 128), flip(c.c, 128), flip(c.d, 128)};
    return {vreinterpretq_s8_u8(c.a), vreinterpretq_s8_u8(c.b), vreinterpretq_s8_u8(c.c), vreinterpretq_s8_u8(c.d)};
  }
  // code − zero
  template <int t, int q>
  static RIDGE_INLINE Weights weights(const uint8_t* unit) {
    constexpr int z = Format::kZero;
    const Codes c = Format::template quad<t, q>(unit);
    if constexpr (z != 0) return {flip(c.a, z), flip(c.b, z), flip(c.c, z), flip(c.d, z)};
    return {vreinterpretq_s8_u8(c.a), vreinterpretq_s8_u8(c.b), vreinterpretq_s8_u8(c.c), vreinterpretq_s8_u8(c.d)};
  }
};

// A whole tile takes its quads in the order 0 4 1 5 2 6 3 7, as q and q + 4 of most types lie in the same bytes.
template <int count>
constexpr int quad_order(int i) {
  return count == kQuads ? i / 2 + i % 2 * 4 : i;
}

// What engines that multiply quad by quad do with more than one token; Self adds a token's quads up.
template <class Self>
struct QuadEngine {
  static constexpr size_t kTileBytes = 64 * kQuads;
  static constexpr int kLeastTokens = 1;

  template <class Format, int t>
  static RIDGE_INLINE void unfold(const uint8_t* unit, int8_t* tile) {
    repeat<kQuads>([&]<int q>() __attribute__((always_inline)) {
      store_weights(tile + 64 * q, Signed<Format>::template weights<t, q>(unit));
    });
  }
  template <int bound, int first, int count, int Tokens>
  static RIDGE_INLINE void dots(const int8_t* tile, const int8_t* const* x, Dot* dot) {
    for (int t = 0; t < Tokens; ++t) dot[t] = set_dot(0);
    Self::template accumulate<bound, first, count, Tokens>(
        [&]<int q>() __attribute__((always_inline)) { return load_weights(tile + 64 * q); }, x, dot);
  }
};

constexpr size_t kChunkTiles = 16;  // 512 columns; a multiple of every unit
constexpr size_t kTokenBlock = 32;

// The activations of one token for one chunk.
struct alignas(64) TokenChunk {
  int8_t q[kChunkTiles * kTileColumns];
  float d[kChunkTiles];
  float min_factor[2 * kChunkTiles];  // d · Σ q of each group
};

template <class Format, class Engine>
struct MatmulQ8 {
  static constexpr int kGroups = Format::kGroups;
  static constexpr int kGroupQuads = kQuads / kGroups;
  static constexpr int kBound = Signed<Format>::kBound;

  static RIDGE_INLINE int32_t group_sum(const int32_t* sums, size_t tile, int g) {
    if constexpr (kGroups == 2) return sums[2 * tile + g];
    return sums[2 * tile] + sums[2 * tile + 1];
  }

  // acc continued over one group.
  static RIDGE_INLINE F add_group(Dot dot, F s, const float* m, float d, float min_factor, F acc) {
    const F value = {vcvtq_f32_s32(dot.a), vcvtq_f32_s32(dot.b), vcvtq_f32_s32(dot.c), vcvtq_f32_s32(dot.d)};
    acc = Vec::fma(value, Vec::mul(s, Vec::set(d)), acc);
    if constexpr (Format::kHasMin) acc = Vec::fma(Vec::load(m), Vec::set(min_factor), acc);
    return acc;
  }

  // ---- One token ----------------------------------------------------------------------------------------------------

  struct Row {
    const int8_t* q;
    const float* d;
    const int32_t* sums;
  };

  template <int t>
  static RIDGE_INLINE F add_tile(const uint8_t* unit, const Scales& scales, const Row& row, size_t tile, F acc) {
    const int8_t* x = row.q + kTileColumns * tile;
    repeat<kGroups>([&]<int g>() __attribute__((always_inline)) {
      const int32_t sum = group_sum(row.sums, tile, g);
      Dot dot = set_dot(-Signed<Format>::kStart * sum);
      Engine::template accumulate<kBound, g * kGroupQuads, kGroupQuads, 1>(
          [&]<int q>() __attribute__((always_inline)) { return Signed<Format>::template codes<t, q>(unit); }, &x, &dot);
      const float d = row.d[tile];
      acc = add_group(dot, Vec::load(scales.s[t * kGroups + g]), scales.m[t * kGroups + g], d,
                      d * static_cast<float>(sum), acc);
    });
    return acc;
  }

  static RIDGE_INLINE F one_token(const uint8_t* unit, size_t tiles, const Row& row) {
    F acc = Vec::zero();
    Scales scales;
    for (size_t tile = 0; tile < tiles; tile += Format::kUnitTiles, unit += Format::kUnitBytes) {
      Format::scales(unit, scales);
      repeat<Format::kUnitTiles>([&]<int t>() __attribute__((always_inline)) {
        // Only blocks of 32 columns may leave a unit unfilled.
        if (t == 0 || Format::kUnitTiles == 8 || tile + t < tiles) acc = add_tile<t>(unit, scales, row, tile + t, acc);
      });
    }
    return acc;
  }

  static void decode(const MatmulArgs& args) {
    const size_t bytes = Format::panel_bytes(args.cols);
    const Row row = {args.x8.q, args.x8.d, args.x8.sums};
    const uint8_t* panel = args.panels;
    for (size_t r = 0; r < args.rows; r += kPanelRows, panel += bytes) {
      Vec::store(args.out + r, one_token(panel, args.cols / kTileColumns, row), rows_of_panel(args, r));
    }
  }

  // ---- Many tokens --------------------------------------------------------------------------------------------------

  static void gather(const Q8Rows& x, size_t token, size_t tile, size_t tiles, TokenChunk& out) {
    memcpy(out.q, x.q + token * x.q_stride + tile * kTileColumns, tiles * kTileColumns);
    memcpy(out.d, x.d + token * x.d_stride + tile, tiles * sizeof(float));
    if constexpr (Format::kHasMin) {
      const int32_t* sums = x.sums + 2 * (token * x.d_stride + tile);
      for (size_t t = 0; t < tiles; ++t) {
        for (int g = 0; g < kGroups; ++g) {
          out.min_factor[kGroups * t + g] = out.d[t] * static_cast<float>(group_sum(sums, t, g));
        }
      }
    }
  }

  // One unfolded tile (number `i` of the chunk) with `Tokens` tokens. s, m: [kGroups][16]. acc: [Tokens][16], loaded
  // after the dots, which take all the registers there are.
  template <int Tokens>
  static __attribute__((noinline)) void some_tokens(const int8_t* tile, const float* s, const float* m,
                                                    const TokenChunk* chunk, size_t i, float* acc) {
    const int8_t* x[Tokens];
    for (int t = 0; t < Tokens; ++t) x[t] = chunk[t].q + kTileColumns * i;
    repeat<kGroups>([&]<int g>() __attribute__((always_inline)) {
      Dot dot[Tokens];
      Engine::template dots<kBound, g * kGroupQuads, kGroupQuads, Tokens>(tile, x, dot);
      const F scale = Vec::load(s + 16 * g);
#pragma GCC unroll 4
      for (int t = 0; t < Tokens; ++t) {
        const float min_factor = Format::kHasMin ? chunk[t].min_factor[kGroups * i + g] : 0.0f;
        const F sum = Vec::load(acc + 16 * t);
        Vec::store(acc + 16 * t, add_group(dot[t], scale, m + 16 * g, chunk[t].d[i], min_factor, sum));
      }
    });
  }

  // acc: [tokens, rounded up to kLeastTokens][16], continued over a chunk of one panel.
  static void many_tokens(const uint8_t* unit, size_t tiles, const TokenChunk* chunk, size_t tokens, float* acc) {
    constexpr int kMost = Engine::kTokens, kLeast = Engine::kLeastTokens;
    Scales scales;
    alignas(64) int8_t unfolded[Engine::kTileBytes];
    for (size_t i = 0; i < tiles; i += Format::kUnitTiles, unit += Format::kUnitBytes) {
      Format::scales(unit, scales);
      repeat<Format::kUnitTiles>([&]<int u>() __attribute__((always_inline)) {
        if (i + u >= tiles) return;
        Engine::template unfold<Format, u>(unit, unfolded);
        const float* s = scales.s[u * kGroups];
        const float* m = scales.m[u * kGroups];
        size_t t = 0;
        for (; t + kMost <= tokens; t += kMost) some_tokens<kMost>(unfolded, s, m, chunk + t, i + u, acc + 16 * t);
        for (; t < tokens; t += kLeast) some_tokens<kLeast>(unfolded, s, m, chunk + t, i + u, acc + 16 * t);
      });
    }
  }

  // One panel of outputs of `tokens` tokens, continued over the chunk that begins at `tile`.
  static void prefill_panel(const uint8_t* unit, size_t tiles, const TokenChunk* chunk, size_t tokens, bool first,
                            float* out, size_t stride, size_t rows) {
    alignas(64) float acc[kTokenBlock][16];
    const size_t computed = (tokens + Engine::kLeastTokens - 1) / Engine::kLeastTokens * Engine::kLeastTokens;
    for (size_t t = 0; t < computed; ++t) {
      Vec::store(acc[t], first || t >= tokens ? Vec::zero() : Vec::load(out + t * stride, rows));
    }
    many_tokens(unit, tiles, chunk, tokens, acc[0]);
    for (size_t t = 0; t < tokens; ++t) Vec::store(out + t * stride, Vec::load(acc[t]), rows);
  }

  static void prefill(const MatmulArgs& args) {
    TokenChunk chunk[kTokenBlock];
    const size_t bytes = Format::panel_bytes(args.cols), all_tiles = args.cols / kTileColumns;
    for (size_t token = 0; token < args.tokens; token += kTokenBlock) {
      const size_t tokens = args.tokens - token < kTokenBlock ? args.tokens - token : kTokenBlock;
      for (size_t tile = 0; tile < all_tiles; tile += kChunkTiles) {
        const size_t tiles = all_tiles - tile < kChunkTiles ? all_tiles - tile : kChunkTiles;
        for (size_t t = 0; t < tokens; ++t) gather(args.x8, token + t, tile, tiles, chunk[t]);
        // A lone last token of an engine that takes pairs is computed twice.
        if (tokens % Engine::kLeastTokens != 0) gather(args.x8, token + tokens - 1, tile, tiles, chunk[tokens]);
        const uint8_t* unit = args.panels + tile / Format::kUnitTiles * Format::kUnitBytes;
        for (size_t r = 0; r < args.rows; r += kPanelRows, unit += bytes) {
          prefill_panel(unit, tiles, chunk, tokens, tile == 0, args.out + token * args.out_stride + r, args.out_stride,
                        rows_of_panel(args, r));
        }
      }
    }
  }

  static RIDGE_INLINE size_t rows_of_panel(const MatmulArgs& args, size_t row) {
    return args.rows - row < kPanelRows ? args.rows - row : kPanelRows;
  }

  static void matmul(const MatmulArgs& args) {
    if (args.tokens == 1) {
      decode(args);
    } else {
      prefill(args);
    }
  }
};

}  // namespace
}  // namespace ridge::neon
