// The panel layouts (docs/panels.md) in AVX2: one struct per quantised type. A vector of the panel, 64 bytes with 4
// codes of each of 16 rows, is two registers; a tile is 32 columns, 8 such vectors (quads).
//
// Not for: other ISAs, or code outside this folder and avxvnni/ (everything has internal linkage).
//
//   Scales scales;
//   Q4_K::scales(unit, scales);                 // all groups of the unit, as floats
//   Vec::I codes = Q4_K::quad(unit, tile, q);   // lane r, byte i: unsigned code of row r, column 4 q + i
#pragma once

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/avx2/vec.h"

#define RIDGE_INLINE inline __attribute__((always_inline))

namespace ridge::avx2 {
namespace {

using F = Vec::F;
using I = Vec::I;

constexpr int kQuads = 8;  // of a tile

// Scales and minima of a unit's groups; [group][row].
struct alignas(64) Scales {
  float s[16][16];
  float m[16][16];
};

// ---- Pieces ---------------------------------------------------------------------------------------------------------

RIDGE_INLINE I load(const uint8_t* p) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32))};
}
RIDGE_INLINE void store(uint8_t* p, I v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v.low);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 32), v.high);
}
RIDGE_INLINE F load_halves(const uint8_t* p) {
  return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
          _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 16)))};
}
RIDGE_INLINE I operator|(I a, I b) { return {_mm256_or_si256(a.low, b.low), _mm256_or_si256(a.high, b.high)}; }

// (v >> shift) & mask in every byte; a negative shift goes left. No bits may cross into a byte through the mask.
RIDGE_INLINE __m256i bits(__m256i v, int shift, uint8_t mask) {
  if (shift != 0)
    v = shift > 0 ? _mm256_srl_epi16(v, _mm_cvtsi32_si128(shift)) : _mm256_sll_epi16(v, _mm_cvtsi32_si128(-shift));
  return _mm256_and_si256(v, _mm256_set1_epi8(static_cast<char>(mask)));
}
RIDGE_INLINE I bits(I v, int shift, uint8_t mask) { return {bits(v.low, shift, mask), bits(v.high, shift, mask)}; }

// (v >> shift) & mask in every 32-bit lane, as a float.
RIDGE_INLINE F lane_bits(I v, int shift, int mask) {
  const __m128i count = _mm_cvtsi32_si128(shift);
  const __m256i m = _mm256_set1_epi32(mask);
  return {_mm256_cvtepi32_ps(_mm256_and_si256(_mm256_srl_epi32(v.low, count), m)),
          _mm256_cvtepi32_ps(_mm256_and_si256(_mm256_srl_epi32(v.high, count), m))};
}
// Byte `index` of every lane, signed, as a float.
RIDGE_INLINE F signed_byte(I v, int index) {
  const __m128i left = _mm_cvtsi32_si128(24 - 8 * index);
  return {_mm256_cvtepi32_ps(_mm256_srai_epi32(_mm256_sll_epi32(v.low, left), 24)),
          _mm256_cvtepi32_ps(_mm256_srai_epi32(_mm256_sll_epi32(v.high, left), 24))};
}

RIDGE_INLINE I look_up(__m128i table, I nibbles) {
  const __m256i t = _mm256_broadcastsi128_si256(table);
  return {_mm256_shuffle_epi8(t, nibbles.low), _mm256_shuffle_epi8(t, nibbles.high)};
}
RIDGE_INLINE __m128i iq4_table() {  // + 128
  return _mm_setr_epi8(1, 24, 45, 63, 79, 93, 106, 118, -127, -115, -103, -90, -75, -59, -39, -15);
}
RIDGE_INLINE __m128i mxfp4_table() {  // doubled, + 12
  return _mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0);
}

// Byte j: column j in its low nibble, column j + 16 in its high one.
RIDGE_INLINE I nibble_halves(const uint8_t* p, int q) { return bits(load(p + 64 * (q & 3)), q < 4 ? 0 : 4, 15); }
// The fifth bit of quad q is bit q of every byte.
RIDGE_INLINE I bit_plane(const uint8_t* p, int q) { return bits(load(p), q - 4, 16); }

RIDGE_INLINE void store_scale(Scales& out, int group, F d, F factor) { Vec::store(out.s[group], Vec::mul(d, factor)); }
RIDGE_INLINE void store_min(Scales& out, int group, F dmin, F factor) {
  Vec::store(out.m[group], Vec::negate(Vec::mul(dmin, factor)));
}

// What all formats have. `largest` is the largest code: how many quads may be summed in 16 bits depends on it.
template <int unit_tiles, size_t unit_bytes, int groups, int zero, int largest, bool has_min>
struct Layout {
  static constexpr int kUnitTiles = unit_tiles;
  static constexpr int kPeriod = unit_tiles;  // tiles after which shifts and places within a vector repeat
  static constexpr size_t kUnitBytes = unit_bytes;
  static constexpr int kGroups = groups;  // per tile
  static constexpr int kZero = zero;
  static constexpr int kLargest = largest;
  static constexpr bool kHasMin = has_min;

  // The last unit of a panel may have fewer tiles: the whole header (64 bytes) and only as many bodies. Types with
  // blocks of 256 columns have no such units.
  static RIDGE_INLINE size_t panel_bytes(size_t cols) {
    constexpr size_t kHeader = unit_tiles == 2 || unit_tiles == 4 ? 64 : 0, kBody = (unit_bytes - kHeader) / unit_tiles;
    const size_t tiles = cols / 32, rest = tiles % unit_tiles;
    return (tiles / unit_tiles * unit_bytes + (rest == 0 ? 0 : kHeader + rest * kBody) + 63) / 64 * 64;
  }
};

// ---- Blocks of 32 columns -------------------------------------------------------------------------------------------

struct Q4_0 : Layout<2, 576, 1, 8, 15, false> {
  static RIDGE_INLINE void scales(const uint8_t* unit, Scales& out) {
    Vec::store(out.s[0], load_halves(unit));
    Vec::store(out.s[1], load_halves(unit + 32));
  }
  static RIDGE_INLINE I quad(const uint8_t* unit, int tile, int q) { return nibble_halves(unit + 64 + 256 * tile, q); }
};

struct IQ4_NL : Layout<2, 576, 1, 128, 255, false> {
  static RIDGE_INLINE void scales(const uint8_t* unit, Scales& out) { Q4_0::scales(unit, out); }
  static RIDGE_INLINE I quad(const uint8_t* unit, int tile, int q) {
    return look_up(iq4_table(), Q4_0::quad(unit, tile, q));
  }
};

struct Q4_1 : Layout<1, 320, 1, 0, 15, true> {
  static RIDGE_INLINE void scales(const uint8_t* unit, Scales& out) {
    Vec::store(out.s[0], load_halves(unit));
    Vec::store(out.m[0], load_halves(unit + 32));
  }
  static RIDGE_INLINE I quad(const uint8_t* unit, int /*tile*/, int q) { return nibble_halves(unit + 64, q); }
};

struct Q5_0 : Layout<2, 704, 1, 16, 31, false> {
  static RIDGE_INLINE void scales(const uint8_t* unit, Scales& out) { Q4_0::scales(unit, out); }
  static RIDGE_INLINE I quad(const uint8_t* unit, int tile, int q) {
    const uint8_t* body = unit + 64 + 320 * tile;
    return nibble_halves(body + 64, q) | bit_plane(body, q);
  }
};

struct Q5_1 : Layout<1, 384, 1, 0, 31, true> {
  static RIDGE_INLINE void scales(const uint8_t* unit, Scales& out) { Q4_1::scales(unit, out); }
  static RIDGE_INLINE I quad(const uint8_t* unit, int /*tile*/, int q) {
    return nibble_halves(unit + 128, q) | bit_plane(unit + 64, q);
  }
};

struct Q8_0 : Layout<2, 1088, 1, 128, 255, false> {
  static RIDGE_INLINE void scales(const uint8_t* unit, Scales& out) { Q4_0::scales(unit, out); }
  static RIDGE_INLINE I quad(const uint8_t* unit, int tile, int q) { return load(unit + 64 + 512 * tile + 64 * q); }
};

struct MXFP4 : Layout<4, 1088, 1, 12, 24, false> {
  // 2^(e − 128): from e = 1 on the exponent field of 2^(e − 127), halved; below e = 2 the number is subnormal.
  static RIDGE_INLINE __m256 power(const uint8_t* p) {
    const __m256i e = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
    const __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23);
    const __m256i subnormal = _mm256_sllv_epi32(_mm256_set1_epi32(0x00200000), e);
    return _mm256_castsi256_ps(_mm256_blendv_epi8(normal, subnormal, _mm256_cmpgt_epi32(_mm256_set1_epi32(2), e)));
  }
  static RIDGE_INLINE void scales(const uint8_t* unit, Scales& out) {
    for (int t = 0; t < kUnitTiles; ++t) Vec::store(out.s[t], {power(unit + 16 * t), power(unit + 16 * t + 8)});
  }
  static RIDGE_INLINE I quad(const uint8_t* unit, int tile, int q) {
    return look_up(mxfp4_table(), nibble_halves(unit + 64 + 256 * tile, q));
  }
};

// ---- Blocks of 256 columns ------------------------------------------------------------------------------------------

struct Q2_K : Layout<8, 1344, 2, 0, 3, true> {
  static constexpr int kPeriod = 4;
  static RIDGE_INLINE void scales(const uint8_t* unit, Scales& out) {
    const F d = load_halves(unit), dmin = load_halves(unit + 32);
    for (int g = 0; g < 16; ++g) {
      const I v = load(unit + 64 + 64 * (g / 4));
      store_scale(out, g, d, lane_bits(v, 8 * (g % 4), 15));
      store_min(out, g, dmin, lane_bits(v, 8 * (g % 4) + 4, 15));
    }
  }
  static RIDGE_INLINE I quad(const uint8_t* unit, int tile, int q) {
    return bits(load(unit + 320 + 64 * (8 * (tile / 4) + q)), 2 * (tile % 4), 3);
  }
};

struct Q3_K : Layout<8, 1792, 2, 4, 7, false> {
  static RIDGE_INLINE void scales(const uint8_t* unit, Scales& out) {
    const F d = load_halves(unit);
    const I s0 = load(unit + 64), s1 = load(unit + 128), s2 = load(unit + 192);
    const I unfolded[4] = {bits(s0, 0, 15) | bits(s2, -4, 0x30), bits(s1, 0, 15) | bits(s2, -2, 0x30),
                           bits(s0, 4, 15) | bits(s2, 0, 0x30), bits(s1, 4, 15) | bits(s2, 2, 0x30)};
    for (int g = 0; g < 16; ++g) {
      store_scale(out, g, d, Vec::sub(lane_bits(unfolded[g / 4], 8 * (g % 4), 255), Vec::set(32.0f)));
    }
  }
  static RIDGE_INLINE I quad(const uint8_t* unit, int tile, int q) {
    const I low = bits(load(unit + 768 + 64 * (8 * (tile / 4) + q)), 2 * (tile % 4), 3);
    return low | bits(load(unit + 256 + 64 * q), tile - 2, 4);
  }
};

struct Q4_K : Layout<8, 2304, 1, 0, 15, true> {
  static constexpr int kPeriod = 2;
  // 8 scales and 8 minima of 6 bits in three words: four of each to a vector.
  static RIDGE_INLINE void scales(const uint8_t* unit, Scales& out) {
    const F d = load_halves(unit), dmin = load_halves(unit + 32);
    const I s0 = load(unit + 64), s1 = load(unit + 128), s2 = load(unit + 192);
    const I scale[2] = {bits(s0, 0, 63), bits(s2, 0, 15) | bits(s0, 2, 0x30)};
    const I minimum[2] = {bits(s1, 0, 63), bits(s2, 4, 15) | bits(s1, 2, 0x30)};
    for (int g = 0; g < 8; ++g) {
      store_scale(out, g, d, lane_bits(scale[g / 4], 8 * (g % 4), 255));
      store_min(out, g, dmin, lane_bits(minimum[g / 4], 8 * (g % 4), 255));
    }
  }
  static RIDGE_INLINE I nibbles(const uint8_t* p, int tile, int q) {
    return bits(load(p + 64 * (8 * (tile / 2) + q)), 4 * (tile % 2), 15);
  }
  static RIDGE_INLINE I quad(const uint8_t* unit, int tile, int q) { return nibbles(unit + 256, tile, q); }
};

struct Q5_K : Layout<8, 2816, 1, 0, 31, true> {
  static RIDGE_INLINE void scales(const uint8_t* unit, Scales& out) { Q4_K::scales(unit, out); }
  static RIDGE_INLINE I quad(const uint8_t* unit, int tile, int q) {
    return Q4_K::nibbles(unit + 768, tile, q) | bits(load(unit + 256 + 64 * q), tile - 4, 16);
  }
};

struct Q6_K : Layout<8, 3392, 2, 32, 63, false> {
  static constexpr int kPeriod = 4;
  static RIDGE_INLINE void scales(const uint8_t* unit, Scales& out) {
    const F d = load_halves(unit);
    for (int g = 0; g < 16; ++g) store_scale(out, g, d, signed_byte(load(unit + 64 + 64 * (g / 4)), g % 4));
  }
  static RIDGE_INLINE I quad(const uint8_t* unit, int tile, int q) {
    const int k = tile % 4;
    const I low = bits(load(unit + 320 + 64 * (16 * (tile / 4) + 8 * (k & 1) + q)), k < 2 ? 0 : 4, 15);
    return low | bits(load(unit + 2368 + 64 * (8 * (tile / 4) + q)), 2 * k - 4, 0x30);
  }
};

struct IQ4_XS : Layout<8, 2176, 1, 128, 255, false> {
  static constexpr int kPeriod = 1;
  // Tile t: nibble t of the low word, bits 2 t and 2 t + 1 of the high half-word.
  static RIDGE_INLINE void scales(const uint8_t* unit, Scales& out) {
    const F d = load_halves(unit);
    const I low = load(unit + 64);
    const I high = {_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(unit + 32))),
                    _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(unit + 48)))};
    for (int t = 0; t < 8; ++t) {  // low + 16 · high − 32, exact in floats
      const F scale = Vec::fma(lane_bits(high, 2 * t, 3), Vec::set(16.0f), lane_bits(low, 4 * t, 15));
      store_scale(out, t, d, Vec::sub(scale, Vec::set(32.0f)));
    }
  }
  static RIDGE_INLINE I quad(const uint8_t* unit, int tile, int q) {
    return look_up(iq4_table(), nibble_halves(unit + 128 + 256 * tile, q));
  }
};

}  // namespace
}  // namespace ridge::avx2
