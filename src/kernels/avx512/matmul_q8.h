// Quantised weights × int8 activations with VNNI (contract: kernels.h, layouts: docs/panels.md).
//
// One token (decode): every panel is read once, front to back, unfolded in registers; bound by memory.
// More tokens (prefill): kChunkTiles × 32 columns of two panels are unfolded into L1 once and serve up to kMaxTokens
// tokens; the accumulators of 6 tokens × 32 rows stay in registers over the chunk and wait in `out` between chunks.
// The integer accumulators begin at −zero · Σ q, so that dpbusd's Σ code · q ends as Σ (code − zero) · q.
#pragma once

#include "kernels/avx512/prefill.h"

namespace ridge::avx512 {
namespace {

// How weights come from memory while one token is decoded.
// ahead: by prefetches, for Intel. Read from DRAM, of 15.0 GB/s (Sapphire Rapids): Q4_K 13.6 with 1 KiB and 12.6 with 2
// KiB; Q5_K 12.7 and 13.6; Q8_0 14.3 and 14.7; Q6_K 12.1 with 1 KiB, 12.5 with 1.5 KiB, 11.8 with 2 KiB. One unit or 4
// KiB ahead: all slower.
// in_order: a unit's lines are touched by one load instruction before they are used, for AMD, whose prefetchers follow
// an instruction. Left to the loads of the unfolding, each with a stride of a unit, they fall back to what L1 can miss
// (10 GB/s); prefetches come too late or in their way. Of 30 GB/s (Zen 4): Q4_K 23 → 27, Q5_K 21 → 27, Q2_K and Q3_K 15
// → 22 and 24, Q8_0 26 → 29; Q6_K 9 → 21, with a prefetch as well 27.
enum class Fetch { ahead, in_order };
template <class Format, Fetch fetch>
constexpr size_t kPrefetchBytes = fetch == Fetch::ahead ? 2048 : 0;
template <>
constexpr size_t kPrefetchBytes<Q4_K, Fetch::ahead> = 1024;
template <>
constexpr size_t kPrefetchBytes<Q6_K, Fetch::ahead> = 1536;
template <>
constexpr size_t kPrefetchBytes<Q6_K, Fetch::in_order> = 4096;

// Four activations in every lane.
RIDGE_INLINE __m512i quad(const int8_t* q) {
  int word;
  __builtin_memcpy(&word, q, 4);
  return _mm512_set1_epi32(word);
}

// acc continued over one group for one panel.
template <bool has_min>
RIDGE_INLINE __m512 add_group(__m512i dot, __m512 s, __m512 m, __m512 d, const Side& side, __m512 acc) {
  acc = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot), _mm512_mul_ps(s, d), acc);
  if constexpr (has_min) acc = _mm512_fmadd_ps(m, _mm512_set1_ps(side.min_factor), acc);
  return acc;
}

template <bool has_min>
RIDGE_INLINE __m512i start_of(const Side& side) {
  return has_min ? _mm512_setzero_si512() : _mm512_set1_epi32(side.start);
}

// --- decode ---------------------------------------------------------------------------------------------------------

constexpr size_t kDecodeTiles = 4096;  // columns of one round / 32; more columns take more rounds

// The part of a later unit that tile t's turn fetches: all lines at once would fill the miss buffers and stall the
// loads.
template <class Format, Fetch fetch, int t>
RIDGE_INLINE void prefetch_share(const uint8_t* unit) {
  constexpr size_t kAhead = kPrefetchBytes<Format, fetch>;
  if constexpr (kAhead == 0) return;
  constexpr size_t kLines = (Format::kUnitBytes + 63) / 64;
  constexpr size_t kBegin = kLines * t / Format::kUnitTiles, kEnd = kLines * (t + 1) / Format::kUnitTiles;
#pragma GCC unroll 16
  for (size_t line = kBegin; line < kEnd; ++line) {
    _mm_prefetch(reinterpret_cast<const char*>(unit + kAhead + 64 * line), _MM_HINT_T0);
  }
}

// One load instruction, so the loop stays a loop.
template <class Format, Fetch fetch>
RIDGE_INLINE void touch_unit(const uint8_t* unit) {
  if constexpr (fetch == Fetch::ahead) return;
#pragma GCC unroll 1
  for (size_t byte = 0; byte < Format::kUnitBytes; byte += 64) {
    (void)*static_cast<const volatile uint8_t*>(unit + byte);
  }
}

template <class Format, Fetch fetch>
RIDGE_INLINE __m512 decode_panel(const uint8_t* panel, size_t tiles, const int8_t* q, const float* d, const Side* side,
                                 __m512 acc) {
  constexpr size_t kUnit = Format::kUnitTiles;
  size_t t = 0;
  const auto step = [&]<int i>(const typename Format::Unit& unit) __attribute__((always_inline)) {
    Tile tile;
    prefetch_share<Format, fetch, i>(panel);
    Format::template load<i>(unit, tile);
    const Side* tile_side = side + Format::kGroups * (t + i);
    const __m512 d_act = _mm512_set1_ps(d[t + i]);
#pragma GCC unroll 2
    for (int g = 0; g < Format::kGroups; ++g) {
      constexpr int kGroupQuads = kQuads / Format::kGroups;
      __m512i dot = start_of<Format::kHasMin>(tile_side[g]);
#pragma GCC unroll 8
      for (int j = 0; j < kGroupQuads; ++j) {
        const int v = kGroupQuads * g + j;
        dot = _mm512_dpbusd_epi32(dot, tile.q[v], quad(q + kTileColumns * (t + i) + 4 * v));
      }
      acc = add_group<Format::kHasMin>(dot, tile.s[g], tile.m[g], d_act, tile_side[g], acc);
    }
  };
  for (; t + kUnit <= tiles; t += kUnit, panel += Format::kUnitBytes) {
    touch_unit<Format, fetch>(panel);
    const auto unit = Format::open(panel);
    for_tiles<Format::kUnitTiles>([&]<int i>() __attribute__((always_inline)) { step.template operator()<i>(unit); });
  }
  if constexpr (kUnit > 1 && kUnit < 8) {  // blocks of 32 columns need not fill the last unit
    if (t < tiles) {
      const auto unit = Format::open(panel);
      for_tiles<Format::kUnitTiles>([&]<int i>() __attribute__((always_inline)) {
        if (t + i < tiles) step.template operator()<i>(unit);
      });
    }
  }
  return acc;
}

template <class Format, Fetch fetch>
void decode(const MatmulArgs& args, size_t stride) {
  Side side[kDecodeTiles * Format::kGroups];
  const size_t all_tiles = args.cols / kTileColumns;
  for (size_t begin = 0; begin == 0 || begin < all_tiles; begin += kDecodeTiles) {
    const size_t tiles = all_tiles - begin < kDecodeTiles ? all_tiles - begin : kDecodeTiles;
    fill_side<Format>(args.x8.d + begin, args.x8.sums + 2 * begin, tiles, side);
    const uint8_t* panel = args.panels + begin / Format::kUnitTiles * Format::kUnitBytes;
    for (size_t r = 0; r < args.rows; r += kPanelRows, panel += stride) {
      const __mmask16 mask = row_mask(args.rows - r);
      __m512 acc = begin == 0 ? _mm512_setzero_ps() : _mm512_maskz_loadu_ps(mask, args.out + r);
      acc = decode_panel<Format, fetch>(panel, tiles, args.x8.q + kTileColumns * begin, args.x8.d + begin, side, acc);
      _mm512_mask_storeu_ps(args.out + r, mask, acc);
    }
  }
}

// --- prefill --------------------------------------------------------------------------------------------------------

constexpr int kTokenBlock = 6;  // 12 accumulators, 12 integer sums and 8 code vectors: the 32 registers

struct Outputs {
  float* out;
  size_t stride;
  __mmask16 mask;
  bool first;  // first chunk of the columns: accumulators begin at zero
};

// Half a tile (quads 4 h … 4 h + 3 of tile i) of two panels against a block of tokens: every broadcast quad serves both
// panels, and 2 × tokens chains of dpbusd run side by side. (One panel, tokens one after the other: 407 Gop/s in L1,
// interleaved: 475, two panels: 530; each chain of 8 takes 40 cycles, and two loads per cycle are the other bound.)
template <int panels, int tokens>
RIDGE_INLINE void add_half_tile(const Unfolded* w, size_t i, int h, const TokenChunk* x,
                                __m512i (&dot)[panels][tokens]) {
  __m512i q[panels][kQuads / 2];
#pragma GCC unroll 2
  for (int p = 0; p < panels; ++p) {
#pragma GCC unroll 4
    for (int v = 0; v < kQuads / 2; ++v) q[p][v] = _mm512_load_si512(w[p].q[i][kQuads / 2 * h + v]);
  }
#pragma GCC unroll 4
  for (int v = 0; v < kQuads / 2; ++v) {
#pragma GCC unroll 6
    for (int t = 0; t < tokens; ++t) {
      const __m512i activations = quad(x[t].q + kTileColumns * i + kTileColumns / 2 * h + 4 * v);
#pragma GCC unroll 2
      for (int p = 0; p < panels; ++p) dot[p][t] = _mm512_dpbusd_epi32(dot[p][t], q[p][v], activations);
    }
  }
}

template <int groups, bool has_min, int panels, int tokens>
RIDGE_INLINE void add_tile(const Unfolded* w, size_t i, const TokenChunk* x, __m512 (&acc)[panels][tokens]) {
  constexpr int kHalves = 2 / groups;  // of a tile that make a group
  __m512i dot[panels][tokens];
#pragma GCC unroll 2
  for (int g = 0; g < groups; ++g) {
#pragma GCC unroll 6
    for (int t = 0; t < tokens; ++t) {
      const __m512i start = start_of<has_min>(x[t].side[groups * i + g]);
#pragma GCC unroll 2
      for (int p = 0; p < panels; ++p) dot[p][t] = start;
    }
#pragma GCC unroll 2
    for (int h = 0; h < kHalves; ++h) add_half_tile<panels, tokens>(w, i, kHalves * g + h, x, dot);
#pragma GCC unroll 6
    for (int t = 0; t < tokens; ++t) {
      const __m512 d = _mm512_set1_ps(x[t].d[i]);
#pragma GCC unroll 2
      for (int p = 0; p < panels; ++p) {
        acc[p][t] = add_group<has_min>(dot[p][t], _mm512_load_ps(w[p].s[i][g]), _mm512_load_ps(w[p].m[i][g]), d,
                                       x[t].side[groups * i + g], acc[p][t]);
      }
    }
  }
}

template <int groups, bool has_min, int panels, int tokens>
void multiply_block(const Unfolded* w, size_t tiles, const TokenChunk* x, const Outputs* o) {
  __m512 acc[panels][tokens];
#pragma GCC unroll 2
  for (int p = 0; p < panels; ++p) {
#pragma GCC unroll 6
    for (int t = 0; t < tokens; ++t) {
      acc[p][t] = o[p].first ? _mm512_setzero_ps() : _mm512_maskz_loadu_ps(o[p].mask, o[p].out + t * o[p].stride);
    }
  }
  for (size_t i = 0; i < tiles; ++i) add_tile<groups, has_min, panels, tokens>(w, i, x, acc);
#pragma GCC unroll 2
  for (int p = 0; p < panels; ++p) {
#pragma GCC unroll 6
    for (int t = 0; t < tokens; ++t) _mm512_mask_storeu_ps(o[p].out + t * o[p].stride, o[p].mask, acc[p][t]);
  }
}

template <int groups, bool has_min, int panels>
void multiply(const Unfolded* w, size_t tiles, const TokenChunk* x, size_t tokens, Outputs (&o)[panels]) {
  const auto block = [&]<int n>() {
    multiply_block<groups, has_min, panels, n>(w, tiles, x, o);
    x += n;
    tokens -= n;
    for (Outputs& output : o) output.out += n * output.stride;
  };
  while (tokens >= kTokenBlock) block.template operator()<kTokenBlock>();
  if (tokens >= 4) block.template operator()<4>();
  if (tokens == 3) return block.template operator()<3>();
  if (tokens == 2) return block.template operator()<2>();
  if (tokens == 1) return block.template operator()<1>();
}

// Which tokens and tiles of a product are computed now; the activations are gathered.
struct Chunk {
  const TokenChunk* x;
  size_t token, tokens, tile, tiles;
};

template <class Format, int panels>
RIDGE_INLINE void multiply_panels(const MatmulArgs& args, size_t stride, const Chunk& chunk, size_t row, Unfolded* w) {
  const uint8_t* units = args.panels + row / kPanelRows * stride + chunk.tile / Format::kUnitTiles * Format::kUnitBytes;
  Outputs outputs[panels];
#pragma GCC unroll 2
  for (int p = 0; p < panels; ++p) {
    const size_t r = row + p * kPanelRows;
    unfold<Format, 0>(units + p * stride, chunk.tiles, panels * stride, w[p]);
    outputs[p] = {args.out + chunk.token * args.out_stride + r, args.out_stride, row_mask(args.rows - r),
                  chunk.tile == 0};
  }
  multiply<Format::kGroups, Format::kHasMin, panels>(w, chunk.tiles, chunk.x, chunk.tokens, outputs);
}

template <class Format>
void prefill(const MatmulArgs& args, size_t stride) {
  TokenChunk x[kMaxTokens];
  Unfolded w[2];
  const size_t all_tiles = args.cols / kTileColumns;
  for (size_t token = 0; token < args.tokens; token += kMaxTokens) {
    const size_t tokens = args.tokens - token < kMaxTokens ? args.tokens - token : kMaxTokens;
    for (size_t tile = 0; tile < all_tiles; tile += kChunkTiles) {
      const size_t tiles = all_tiles - tile < kChunkTiles ? all_tiles - tile : kChunkTiles;
      gather_tokens<Format>(args.x8, token, tokens, tile, tiles, x);
      const Chunk chunk = {x, token, tokens, tile, tiles};
      size_t row = 0;
      for (; row + kPanelRows < args.rows; row += 2 * kPanelRows) {
        multiply_panels<Format, 2>(args, stride, chunk, row, w);
      }
      if (row < args.rows) multiply_panels<Format, 1>(args, stride, chunk, row, w);
    }
  }
}

template <class Format, Fetch fetch = Fetch::ahead>
void matmul_q8(const MatmulArgs& args) {
  const size_t stride = panel_stride<Format>(args.cols);
  if (args.tokens == 1) {
    decode<Format, fetch>(args, stride);
  } else {
    prefill<Format>(args, stride);
  }
}

}  // namespace
}  // namespace ridge::avx512
