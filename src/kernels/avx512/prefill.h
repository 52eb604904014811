// What the prefill kernels of AVX-512 and AMX share: the activations of a round of tokens gathered at fixed distances,
// and 512 columns of panels unfolded into L1. VNNI multiplies unsigned codes and begins its sums at −zero · Σ q; AMX
// multiplies signed ones (code − zero). Both are exact.
//
// Not for: decode, which unfolds in registers (matmul_q8.cpp).
#pragma once

#include "kernels/avx512/matmul_tiles.h"

namespace ridge::avx512 {
namespace {

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

constexpr size_t kChunkTiles = 16;  // 512 columns: 24 KiB of unfolded tiles of two panels, 704 bytes per token
constexpr size_t kMaxTokens = 128;  // 88 KiB of activations: they stay in L2 while all panels pass

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

// `next` is where the same tiles of the next panel lie; they are fetched while this panel computes. `zero` is taken
// from the codes, which makes them signed.
template <class Format, int zero>
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
      for (int v = 0; v < kQuads; ++v) {
        const __m512i codes = zero == 0 ? tile.q[v] : _mm512_sub_epi8(tile.q[v], byte_mask(static_cast<char>(zero)));
        _mm512_store_si512(out.q[t + i][v], codes);
      }
#pragma GCC unroll 2
      for (int g = 0; g < Format::kGroups; ++g) {
        _mm512_store_ps(out.s[t + i][g], tile.s[g]);
        if constexpr (Format::kHasMin) _mm512_store_ps(out.m[t + i][g], tile.m[g]);
      }
    });
  }
}

}  // namespace
}  // namespace ridge::avx512
