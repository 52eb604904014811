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
#include "kernels/simd/repeat.h"

namespace ridge::avx2 {
namespace {

// How one token's weights come from memory. Panels are read as this many streams side by side, and each fetches so many
// bytes ahead. Zen 3, one core, GB/s, medians of nine in turn (a plain loop reads 18 in one stream, 21 in four):
//
//              one stream             two streams
//              0     1 KiB  2 KiB     0     512 B  1 KiB  1.5 KiB  2 KiB  3 KiB
//   Q4_0       13.0  16.2   15.8      14.9  16.0   17.8   18.1     16.4   17.2
//   Q4_1       14.9  17.7   18.0      16.3  16.7   20.5   19.9     18.1   17.6
//   Q8_0       14.4  17.0   15.2      17.4  19.8   19.4   18.2     16.7   15.7
//   Q4_K       11.5  13.8   11.8      13.7  14.5   15.5   13.6     13.1   12.3
//   Q5_K        9.3  10.1   11.6      11.8  12.5   12.8   14.1     11.2   10.6
//   Q6_K        9.2  10.3   11.1       8.8   9.4   10.7   11.6     12.8   11.0
//   Q2_K        7.1   7.3    7.7       6.4   6.5    6.5    6.2      6.7    6.4
//
// Two panels share the broadcasts of activations, but need more registers: types that compute longer than they read
// (Q2_K, Q3_K, below two bits) have one stream.
template <class Format>
constexpr int kStreams = Format::kUnitBytes * 8 / Format::kUnitTiles / 512 >= 4 ? 2 : 1;  // bits of a weight, at least
template <class Format>
constexpr size_t kAhead = 1024;
template <>
constexpr size_t kAhead<Q6_K> = 2048;

// The part of what comes later that a tile's turn fetches: all lines at once would fill the miss buffers. `part`: where
// the tile's period begins; k: the tile in it.
template <class Format, int k>
RIDGE_INLINE void fetch_share(const uint8_t* part) {
  constexpr size_t kLines =
      (Format::kUnitBytes * Format::kPeriod + 64 * Format::kUnitTiles - 1) / (64 * Format::kUnitTiles);
  constexpr size_t kBegin = kLines * k / Format::kPeriod, kEnd = kLines * (k + 1) / Format::kPeriod;
#pragma GCC unroll 16
  for (size_t line = kBegin; line < kEnd; ++line) {
    _mm_prefetch(reinterpret_cast<const char*>(part + kAhead<Format> + 64 * line), _MM_HINT_T0);
  }
}

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

  // acc[p * Tokens + t] continued over one tile. get(p, q): the codes of quad q of panel p; s[p], m[p]: the tile's
  // scales and minima, [kGroups][16].
  template <int Panels, int Tokens, class Get>
  static RIDGE_INLINE void multiply_tile(Get get, const float* const* s, const float* const* m, const Row* rows,
                                         size_t tile, F* acc) {
#pragma GCC unroll 2
    for (int g = 0; g < kGroups; ++g) {
      I dot[Panels * Tokens];
      Dot::template accumulate<Panels, Tokens, kGroupQuads>(
          [&](int p, int q) __attribute__((always_inline)) { return get(p, g * kGroupQuads + q); },
          [&](int t, int q)
              __attribute__((always_inline)) { return broadcast4(rows[t].q + 32 * tile + 4 * (g * kGroupQuads + q)); },
          [&](int t)
              __attribute__((always_inline)) { return _mm256_set1_epi32(-Dot::kZero * group_sum(rows[t], tile, g)); },
          dot);
#pragma GCC unroll 2
      for (int p = 0; p < Panels; ++p) {
        const F scale = Vec::load(s[p] + 16 * g);
#pragma GCC unroll 4
        for (int t = 0; t < Tokens; ++t) {
          const float d = rows[t].d[tile];
          F& sum = acc[p * Tokens + t];
          const I& whole = dot[p * Tokens + t];
          const F value = {_mm256_cvtepi32_ps(whole.low), _mm256_cvtepi32_ps(whole.high)};
          sum = Vec::fma(value, Vec::mul(scale, Vec::set(d)), sum);
          if constexpr (Format::kHasMin) {
            const float activations = static_cast<float>(group_sum(rows[t], tile, g));
            sum = Vec::fma(Vec::load(m[p] + 16 * g), Vec::set(d * activations), sum);
          }
        }
      }
    }
  }

  // acc[p] of `Panels` panels that lie `apart` bytes from each other, for one token: as many streams as there are
  // panels.
  template <int Panels>
  static RIDGE_INLINE void one_token(const uint8_t* panel, size_t apart, size_t tiles, const Row& row, F* acc) {
    Scales scales[Panels];
#pragma GCC unroll 2
    for (int p = 0; p < Panels; ++p) acc[p] = Vec::zero();
    for (size_t first = 0; first < tiles; first += Format::kUnitTiles, panel += Format::kUnitBytes) {
#pragma GCC unroll 2
      for (int p = 0; p < Panels; ++p) {
        Format::scales(panel + static_cast<size_t>(p) * apart, scales[p]);
      }
      // A loop over periods: all eight tiles one after the other are more code than the cache of decoded instructions.
#pragma GCC unroll 1
      for (int base = 0; base < Format::kUnitTiles; base += Format::kPeriod) {
        if (base % Format::kPeriod != 0) __builtin_unreachable();
        simd::repeat<Format::kPeriod>([&]<int k>() __attribute__((always_inline)) {
          const int t = base + k;
          if (Format::kUnitTiles < 8 && first + static_cast<size_t>(t) >= tiles)
            return;  // the last unit need not be full
          const float *s[Panels], *m[Panels];
#pragma GCC unroll 2
          for (int p = 0; p < Panels; ++p) {
            const uint8_t* unit = panel + static_cast<size_t>(p) * apart;
            fetch_share<Format, k>(unit + Format::kUnitBytes * static_cast<size_t>(base) / Format::kUnitTiles);
            s[p] = scales[p].s[t * kGroups];
            m[p] = scales[p].m[t * kGroups];
          }
          multiply_tile<Panels, 1>(
              [&](int p, int q)
                  __attribute__((always_inline)) { return Format::quad(panel + static_cast<size_t>(p) * apart, t, q); },
              s, m, &row, first + static_cast<size_t>(t), acc);
        });
      }
    }
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
    multiply_tile<1, Tokens>(
        [&](int, int q) __attribute__((always_inline)) { return load(codes + 64 * q); }, &s, &m, rows, tile, registers);
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

  // With two streams half of the rows are read beside the other half.
  static void decode(const MatmulArgs& args) {
    constexpr int kPanels = kStreams<Format>;
    const size_t tiles = args.cols / 32, panel_bytes = Format::panel_bytes(args.cols);
    const size_t panels = (args.rows + kPanelRows - 1) / kPanelRows, together = panels / kPanels;
    const Row row = {args.x8.q, args.x8.d, args.x8.sums};
    const auto put = [&](size_t panel, F sums) {
      Vec::store(args.out + panel * kPanelRows, sums, rows_of_panel(args, panel * kPanelRows));
    };
    for (size_t i = 0; i < together; ++i) {
      F acc[kPanels];
      one_token<kPanels>(args.panels + i * panel_bytes, together * panel_bytes, tiles, row, acc);
#pragma GCC unroll 2
      for (size_t p = 0; p < kPanels; ++p) put(i + p * together, acc[p]);
    }
    if (panels % kPanels == 0) return;
    F acc;
    one_token<1>(args.panels + (panels - 1) * panel_bytes, 0, tiles, row, &acc);
    put(panels - 1, acc);
  }

  static void matmul(const MatmulArgs& args) {
    if (args.tokens == 1) return decode(args);
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
