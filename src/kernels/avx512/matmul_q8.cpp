// Quantised weights × int8 activations with VNNI (contract: kernels.h, layouts: docs/panels.md).
//
// One token (decode): every panel is read once, front to back, unfolded in registers; bound by memory.
// More tokens (prefill): kChunkTiles × 32 columns of two panels are unfolded into L1 once and serve up to kMaxTokens
// tokens; the accumulators of 6 tokens × 32 rows stay in registers over the chunk and wait in `out` between chunks.
// The integer accumulators begin at −zero · Σ q, so that dpbusd's Σ code · q ends as Σ (code − zero) · q.
#include "kernels/avx512/low_bit_tiles.h"
#include "kernels/avx512/matmul_tiles.h"

namespace ridge::avx512 {
namespace {

constexpr size_t kPrefetchBytes = 1024;  // how far decode reads ahead (4 KiB: 15 % slower for Q4_K, equal for Q8_0)

// Four activations in every lane.
RIDGE_INLINE __m512i quad(const int8_t* q) {
  int word;
  __builtin_memcpy(&word, q, 4);
  return _mm512_set1_epi32(word);
}

// What a group needs of the activations beside the codes: −zero · Σ q as an integer, or d · Σ q for a minimum.
union Side {
  int32_t start;
  float min_factor;
};

template <class Format>
RIDGE_INLINE void fill_side(const float* d, const int32_t* sums, size_t tiles, Side* side) {
  for (size_t t = 0; t < tiles; ++t) {
    for (int g = 0; g < Format::kGroups; ++g) {
      const int32_t sum = Format::kGroups == 2 ? sums[2 * t + g] : sums[2 * t] + sums[2 * t + 1];
      Side& out = side[t * Format::kGroups + g];
      if constexpr (Format::kHasMin) {
        out.min_factor = d[t] * static_cast<float>(sum);
      } else {
        out.start = -Format::kZero * sum;
      }
    }
  }
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
template <class Format, int t>
RIDGE_INLINE void prefetch_share(const uint8_t* unit) {
  constexpr size_t kLines = (Format::kUnitBytes + 63) / 64;
  constexpr size_t kBegin = kLines * t / Format::kUnitTiles, kEnd = kLines * (t + 1) / Format::kUnitTiles;
#pragma GCC unroll 16
  for (size_t line = kBegin; line < kEnd; ++line) {
    _mm_prefetch(reinterpret_cast<const char*>(unit + kPrefetchBytes + 64 * line), _MM_HINT_T0);
  }
}

template <class Format>
RIDGE_INLINE __m512 decode_panel(const uint8_t* panel, size_t tiles, const int8_t* q, const float* d, const Side* side,
                                 __m512 acc) {
  constexpr size_t kUnit = Format::kUnitTiles;
  size_t t = 0;
  const auto step = [&]<int i>(const typename Format::Unit& unit) __attribute__((always_inline)) {
    Tile tile;
    prefetch_share<Format, i>(panel);
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

template <class Format>
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
      acc = decode_panel<Format>(panel, tiles, args.x8.q + kTileColumns * begin, args.x8.d + begin, side, acc);
      _mm512_mask_storeu_ps(args.out + r, mask, acc);
    }
  }
}

// --- prefill --------------------------------------------------------------------------------------------------------

constexpr size_t kChunkTiles = 16;  // 512 columns: 24 KiB of unfolded tiles of two panels, 704 bytes per token
constexpr size_t kMaxTokens = 48;   // 33 KiB of activations: they stay in L2 while all panels pass
constexpr int kTokenBlock = 6;      // 12 accumulators, 12 integer sums and 8 code vectors: the 32 registers

// The activations of one token for one chunk, at fixed distances.
struct alignas(64) TokenChunk {
  int8_t q[kChunkTiles * kTileColumns];
  float d[kChunkTiles];
  Side side[kChunkTiles * 2];
};

struct alignas(64) Unfolded {
  uint8_t q[kChunkTiles][kQuads][64];
  float s[kChunkTiles][2][16];
  float m[kChunkTiles][2][16];
};

template <class Format>
void gather_tokens(const Q8Rows& x, size_t token, size_t count, size_t tile, size_t tiles, TokenChunk* chunks) {
  for (size_t i = 0; i < count; ++i) {
    const size_t t = token + i;
    TokenChunk& chunk = chunks[i];
    __builtin_memcpy(chunk.q, x.q + t * x.q_stride + tile * kTileColumns, tiles * kTileColumns);
    __builtin_memcpy(chunk.d, x.d + t * x.d_stride + tile, tiles * sizeof(float));
    fill_side<Format>(chunk.d, x.sums + 2 * (t * x.d_stride + tile), tiles, chunk.side);
  }
}

// `next` is where the same tiles of the next panel lie; they are fetched while this panel computes.
template <class Format>
void unfold(const uint8_t* units, size_t tiles, size_t next, Unfolded& out) {
  constexpr size_t kUnit = Format::kUnitTiles;
  for (size_t t = 0; t < tiles; t += kUnit, units += Format::kUnitBytes) {
    for (size_t line = 0; line < Format::kUnitBytes; line += 64) {
      _mm_prefetch(reinterpret_cast<const char*>(units + next + line), _MM_HINT_T1);
    }
    const auto unit = Format::open(units);
    for_tiles<Format::kUnitTiles>([&]<int i>() __attribute__((always_inline)) {
      if (t + i >= tiles) return;
      Tile tile;
      Format::template load<i>(unit, tile);
#pragma GCC unroll 8
      for (int v = 0; v < kQuads; ++v) _mm512_store_si512(out.q[t + i][v], tile.q[v]);
#pragma GCC unroll 2
      for (int g = 0; g < Format::kGroups; ++g) {
        _mm512_store_ps(out.s[t + i][g], tile.s[g]);
        if constexpr (Format::kHasMin) _mm512_store_ps(out.m[t + i][g], tile.m[g]);
      }
    });
  }
}

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
    unfold<Format>(units + p * stride, chunk.tiles, panels * stride, w[p]);
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

template <class Format>
void matmul_q8(const MatmulArgs& args) {
  const size_t stride = panel_stride<Format>(args.cols);
  if (args.tokens == 1) {
    decode<Format>(args, stride);
  } else {
    prefill<Format>(args, stride);
  }
}

}  // namespace

#define RIDGE_ENTRY(type)                                                                                             \
  {                                                                                                                   \
    Op::matmul_q8, Isa::avx512, Type::type, kBitAvx2Fma | kBitAvx512 | kBitAvx512Vnni, RIDGE_KERNEL(matmul_q8<type>), \
        "avx512 vnni"                                                                                                 \
  }

const KernelEntry kMatmulQ8Entries[] = {
    RIDGE_ENTRY(Q4_0),    RIDGE_ENTRY(Q4_1),   RIDGE_ENTRY(Q5_0),  RIDGE_ENTRY(Q5_1),    RIDGE_ENTRY(Q8_0),
    RIDGE_ENTRY(Q2_K),    RIDGE_ENTRY(Q3_K),   RIDGE_ENTRY(Q4_K),  RIDGE_ENTRY(Q5_K),    RIDGE_ENTRY(Q6_K),
    RIDGE_ENTRY(IQ4_NL),  RIDGE_ENTRY(IQ4_XS), RIDGE_ENTRY(MXFP4), RIDGE_ENTRY(IQ1_S),   RIDGE_ENTRY(IQ1_M),
    RIDGE_ENTRY(IQ2_XXS), RIDGE_ENTRY(IQ2_XS), RIDGE_ENTRY(IQ2_S), RIDGE_ENTRY(IQ3_XXS), RIDGE_ENTRY(IQ3_S),
    RIDGE_ENTRY(TQ1_0),   RIDGE_ENTRY(TQ2_0),
};
const size_t kMatmulQ8Count = sizeof(kMatmulQ8Entries) / sizeof(kMatmulQ8Entries[0]);

}  // namespace ridge::avx512
