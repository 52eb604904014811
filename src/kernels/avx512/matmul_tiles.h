// The panel layouts (docs/panels.md) in AVX-512: one struct per quantised type that unfolds tiles of 16 rows × 32
// columns into registers. Both matmul files are templates over these structs; adding a type means adding one here.
//
// Not for: other ISAs, or code outside this folder (everything has internal linkage).
//
//   for (…units…) { const auto unit = Format::open(unit_bytes);
//     Tile tile; Format::load<3>(unit, tile);        // the unit's tile 3: codes, scales, minima
//   }
#pragma once

#include <immintrin.h>

#include "kernels/entries.h"

#define RIDGE_INLINE inline __attribute__((always_inline))

namespace ridge::avx512 {
namespace {

constexpr size_t kTileColumns = 32;
constexpr int kQuads = 8;  // vectors of codes in a tile

struct Tile {
  __m512i q[kQuads];  // lane r, byte i: unsigned code of row r, column 4 q + i
  __m512 s[2];        // scale of each row, per group
  __m512 m[2];        // minimum of each row, per group
};

RIDGE_INLINE __m512i load(const uint8_t* p) { return _mm512_loadu_si512(p); }
RIDGE_INLINE __m512 load_halves(const uint8_t* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
RIDGE_INLINE __m512i byte_mask(char value) { return _mm512_set1_epi8(value); }
// (v >> shift) & mask in every byte; a negative shift goes left.
template <int shift>
RIDGE_INLINE __m512i bits(__m512i v, char mask) {
  if constexpr (shift > 0) v = _mm512_srli_epi16(v, shift);
  if constexpr (shift < 0) v = _mm512_slli_epi16(v, -shift);
  return _mm512_and_si512(v, byte_mask(mask));
}
// base | (v >> shift) & mask
template <int shift>
RIDGE_INLINE __m512i or_bits(__m512i base, __m512i v, char mask) {
  if constexpr (shift > 0) v = _mm512_srli_epi16(v, shift);
  if constexpr (shift < 0) v = _mm512_slli_epi16(v, -shift);
  return _mm512_ternarylogic_epi32(base, v, byte_mask(mask), 0xf8);  // a | (b & c)
}
// Byte i of every lane as an integer.
template <int i>
RIDGE_INLINE __m512i unsigned_byte(__m512i v) {
  if constexpr (i == 3) return _mm512_srli_epi32(v, 24);
  return _mm512_and_si512(_mm512_srli_epi32(v, 8 * i), _mm512_set1_epi32(0xff));
}
template <int i>
RIDGE_INLINE __m512i signed_byte(__m512i v) {
  return _mm512_srai_epi32(_mm512_slli_epi32(v, 24 - 8 * i), 24);
}
RIDGE_INLINE __m512 scaled(__m512 d, __m512i factor) { return _mm512_mul_ps(d, _mm512_cvtepi32_ps(factor)); }
// -(d · factor)
RIDGE_INLINE __m512 negated(__m512 d, __m512i factor) {
  return _mm512_xor_ps(scaled(d, factor), _mm512_set1_ps(-0.0f));
}

// Byte j: column j in its low nibble, column j + 16 in its high one.
RIDGE_INLINE void nibble_halves(const uint8_t* p, Tile& tile) {
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m512i v = load(p + 64 * i);
    tile.q[i] = bits<0>(v, 15);
    tile.q[i + 4] = bits<4>(v, 15);
  }
}

RIDGE_INLINE void add_bit_planes(__m512i planes, Tile& tile) {
  tile.q[0] = or_bits<-4>(tile.q[0], planes, 16);
  tile.q[1] = or_bits<-3>(tile.q[1], planes, 16);
  tile.q[2] = or_bits<-2>(tile.q[2], planes, 16);
  tile.q[3] = or_bits<-1>(tile.q[3], planes, 16);
  tile.q[4] = or_bits<0>(tile.q[4], planes, 16);
  tile.q[5] = or_bits<1>(tile.q[5], planes, 16);
  tile.q[6] = or_bits<2>(tile.q[6], planes, 16);
  tile.q[7] = or_bits<3>(tile.q[7], planes, 16);
}

RIDGE_INLINE __m512i iq4_table() {
  return _mm512_broadcast_i32x4(
      _mm_setr_epi8(1, 24, 45, 63, 79, 93, 106, 118, -127, -115, -103, -90, -75, -59, -39, -15));
}
RIDGE_INLINE __m512i mxfp4_table() {
  return _mm512_broadcast_i32x4(_mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0));
}
RIDGE_INLINE void look_up(__m512i table, Tile& tile) {
#pragma GCC unroll 8
  for (int i = 0; i < kQuads; ++i) tile.q[i] = _mm512_shuffle_epi8(table, tile.q[i]);
}

// What all formats have: how panels are cut (tiles of a unit, header and tile bytes) and what the numbers mean.
template <int unit_tiles, size_t header, size_t tile_bytes, int groups, int zero, bool has_min>
struct Layout {
  static constexpr int kUnitTiles = unit_tiles;
  static constexpr size_t kHeader = header;
  static constexpr size_t kTileBytes = tile_bytes;
  static constexpr size_t kUnitBytes = header + unit_tiles * tile_bytes;
  static constexpr int kGroups = groups;  // per tile
  static constexpr int kZero = zero;
  static constexpr bool kHasMin = has_min;
};

struct Bytes {
  const uint8_t* p;
};

struct Q4_0 : Layout<2, 64, 256, 1, 8, false> {
  using Unit = Bytes;
  static RIDGE_INLINE Unit open(const uint8_t* p) { return {p}; }
  template <int t>
  static RIDGE_INLINE void load(const Unit& unit, Tile& tile) {
    tile.s[0] = load_halves(unit.p + 32 * t);
    nibble_halves(unit.p + 64 + 256 * t, tile);
  }
};

struct IQ4_NL : Layout<2, 64, 256, 1, 128, false> {
  using Unit = Bytes;
  static RIDGE_INLINE Unit open(const uint8_t* p) { return {p}; }
  template <int t>
  static RIDGE_INLINE void load(const Unit& unit, Tile& tile) {
    Q4_0::load<t>(unit, tile);
    look_up(iq4_table(), tile);
  }
};

struct Q4_1 : Layout<1, 0, 320, 1, 0, true> {
  using Unit = Bytes;
  static RIDGE_INLINE Unit open(const uint8_t* p) { return {p}; }
  template <int t>
  static RIDGE_INLINE void load(const Unit& unit, Tile& tile) {
    tile.s[0] = load_halves(unit.p);
    tile.m[0] = load_halves(unit.p + 32);
    nibble_halves(unit.p + 64, tile);
  }
};

struct Q5_0 : Layout<2, 64, 320, 1, 16, false> {
  using Unit = Bytes;
  static RIDGE_INLINE Unit open(const uint8_t* p) { return {p}; }
  template <int t>
  static RIDGE_INLINE void load(const Unit& unit, Tile& tile) {
    tile.s[0] = load_halves(unit.p + 32 * t);
    nibble_halves(unit.p + 128 + 320 * t, tile);
    add_bit_planes(avx512::load(unit.p + 64 + 320 * t), tile);
  }
};

struct Q5_1 : Layout<1, 0, 384, 1, 0, true> {
  using Unit = Bytes;
  static RIDGE_INLINE Unit open(const uint8_t* p) { return {p}; }
  template <int t>
  static RIDGE_INLINE void load(const Unit& unit, Tile& tile) {
    tile.s[0] = load_halves(unit.p);
    tile.m[0] = load_halves(unit.p + 32);
    nibble_halves(unit.p + 128, tile);
    add_bit_planes(avx512::load(unit.p + 64), tile);
  }
};

struct Q8_0 : Layout<2, 64, 512, 1, 128, false> {
  using Unit = Bytes;
  static RIDGE_INLINE Unit open(const uint8_t* p) { return {p}; }
  template <int t>
  static RIDGE_INLINE void load(const Unit& unit, Tile& tile) {
    tile.s[0] = load_halves(unit.p + 32 * t);
#pragma GCC unroll 8
    for (int i = 0; i < kQuads; ++i) tile.q[i] = avx512::load(unit.p + 64 + 512 * t + 64 * i);
  }
};

struct MXFP4 : Layout<4, 64, 256, 1, 12, false> {
  using Unit = Bytes;
  static RIDGE_INLINE Unit open(const uint8_t* p) { return {p}; }
  // 2^(e - 128): from e = 1 on the exponent field of 2^(e - 127), halved; e = 0 is the subnormal 2^-128.
  static RIDGE_INLINE __m512 scale(const uint8_t* p) {
    const __m512i e = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    const __m512i normal = _mm512_slli_epi32(_mm512_sub_epi32(e, _mm512_set1_epi32(1)), 23);
    const __m512i subnormal = _mm512_sllv_epi32(_mm512_set1_epi32(0x00200000), e);
    return _mm512_castsi512_ps(
        _mm512_mask_mov_epi32(normal, _mm512_cmplt_epu32_mask(e, _mm512_set1_epi32(2)), subnormal));
  }
  template <int t>
  static RIDGE_INLINE void load(const Unit& unit, Tile& tile) {
    tile.s[0] = scale(unit.p + 16 * t);
    nibble_halves(unit.p + 64 + 256 * t, tile);
    look_up(mxfp4_table(), tile);
  }
};

// The 2-bit codes of Q2_K and Q3_K.
template <int t>
RIDGE_INLINE void two_bits(const uint8_t* p, Tile& tile) {
#pragma GCC unroll 8
  for (int i = 0; i < kQuads; ++i) tile.q[i] = bits<2 * (t % 4)>(load(p + 64 * (8 * (t / 4) + i)), 3);
}
// The nibbles of Q4_K and Q5_K.
template <int t>
RIDGE_INLINE void nibble_groups(const uint8_t* p, Tile& tile) {
#pragma GCC unroll 8
  for (int i = 0; i < kQuads; ++i) tile.q[i] = bits<4 * (t % 2)>(load(p + 64 * (8 * (t / 2) + i)), 15);
}

struct Q2_K : Layout<8, 0, 168, 2, 0, true> {
  struct Unit {
    const uint8_t* p;
    __m512 d, dmin;
  };
  static RIDGE_INLINE Unit open(const uint8_t* p) { return {p, load_halves(p), load_halves(p + 32)}; }
  template <int g>
  static RIDGE_INLINE void group(const Unit& unit, Tile& tile) {
    const __m512i byte = unsigned_byte<g % 4>(avx512::load(unit.p + 64 + 64 * (g / 4)));
    tile.s[g % 2] = scaled(unit.d, _mm512_and_si512(byte, _mm512_set1_epi32(15)));
    tile.m[g % 2] = negated(unit.dmin, _mm512_srli_epi32(byte, 4));
  }
  template <int t>
  static RIDGE_INLINE void load(const Unit& unit, Tile& tile) {
    group<2 * t>(unit, tile);
    group<2 * t + 1>(unit, tile);
    two_bits<t>(unit.p + 320, tile);
  }
};

struct Q3_K : Layout<8, 0, 224, 2, 4, false> {
  struct Unit {
    const uint8_t* p;
    __m512 d;
    __m512i scales[4];
  };
  static RIDGE_INLINE Unit open(const uint8_t* p) {
    const __m512i s0 = avx512::load(p + 64), s1 = avx512::load(p + 128), s2 = avx512::load(p + 192);
    return {p,
            load_halves(p),
            {or_bits<-4>(bits<0>(s0, 15), s2, 0x30), or_bits<-2>(bits<0>(s1, 15), s2, 0x30),
             or_bits<0>(bits<4>(s0, 15), s2, 0x30), or_bits<2>(bits<4>(s1, 15), s2, 0x30)}};
  }
  template <int g>
  static RIDGE_INLINE __m512 scale(const Unit& unit) {
    return scaled(unit.d, _mm512_sub_epi32(unsigned_byte<g % 4>(unit.scales[g / 4]), _mm512_set1_epi32(32)));
  }
  template <int t>
  static RIDGE_INLINE void load(const Unit& unit, Tile& tile) {
    tile.s[0] = scale<2 * t>(unit);
    tile.s[1] = scale<2 * t + 1>(unit);
    two_bits<t>(unit.p + 768, tile);
#pragma GCC unroll 8
    for (int i = 0; i < kQuads; ++i) tile.q[i] = or_bits<t - 2>(tile.q[i], avx512::load(unit.p + 256 + 64 * i), 4);
  }
};

// Scales and minima of Q4_K and Q5_K, four tiles to a vector.
struct SixBitScales {
  const uint8_t* p;
  __m512 d, dmin;
  __m512i scales[2], minima[2];

  static RIDGE_INLINE SixBitScales open(const uint8_t* p) {
    const __m512i s0 = avx512::load(p + 64), s1 = avx512::load(p + 128), s2 = avx512::load(p + 192);
    return {p,
            load_halves(p),
            load_halves(p + 32),
            {bits<0>(s0, 63), or_bits<2>(bits<0>(s2, 15), s0, 0x30)},
            {bits<0>(s1, 63), or_bits<2>(bits<4>(s2, 15), s1, 0x30)}};
  }
  template <int t>
  RIDGE_INLINE void load(Tile& tile) const {
    tile.s[0] = scaled(d, unsigned_byte<t % 4>(scales[t / 4]));
    tile.m[0] = negated(dmin, unsigned_byte<t % 4>(minima[t / 4]));
  }
};

struct Q4_K : Layout<8, 0, 288, 1, 0, true> {
  using Unit = SixBitScales;
  static RIDGE_INLINE Unit open(const uint8_t* p) { return SixBitScales::open(p); }
  template <int t>
  static RIDGE_INLINE void load(const Unit& unit, Tile& tile) {
    unit.load<t>(tile);
    nibble_groups<t>(unit.p + 256, tile);
  }
};

struct Q5_K : Layout<8, 0, 352, 1, 0, true> {
  using Unit = SixBitScales;
  static RIDGE_INLINE Unit open(const uint8_t* p) { return SixBitScales::open(p); }
  template <int t>
  static RIDGE_INLINE void load(const Unit& unit, Tile& tile) {
    unit.load<t>(tile);
    nibble_groups<t>(unit.p + 768, tile);
#pragma GCC unroll 8
    for (int i = 0; i < kQuads; ++i) tile.q[i] = or_bits<t - 4>(tile.q[i], avx512::load(unit.p + 256 + 64 * i), 16);
  }
};

struct Q6_K : Layout<8, 0, 424, 2, 32, false> {
  struct Unit {
    const uint8_t* p;
    __m512 d;
  };
  static RIDGE_INLINE Unit open(const uint8_t* p) { return {p, load_halves(p)}; }
  template <int g>
  static RIDGE_INLINE __m512 scale(const Unit& unit) {
    return scaled(unit.d, signed_byte<g % 4>(avx512::load(unit.p + 64 + 64 * (g / 4))));
  }
  template <int t>
  static RIDGE_INLINE void load(const Unit& unit, Tile& tile) {
    constexpr int k = t % 4, kShift = k < 2 ? 0 : 4;
    tile.s[0] = scale<2 * t>(unit);
    tile.s[1] = scale<2 * t + 1>(unit);
    const uint8_t* low = unit.p + 320 + 64 * (16 * (t / 4) + 8 * (k & 1));
    const uint8_t* high = unit.p + 2368 + 64 * (8 * (t / 4));
#pragma GCC unroll 8
    for (int i = 0; i < kQuads; ++i) {
      const __m512i nibble = bits<kShift>(avx512::load(low + 64 * i), 15);
      tile.q[i] = or_bits<2 * k - 4>(nibble, avx512::load(high + 64 * i), 0x30);
    }
  }
};

struct IQ4_XS : Layout<8, 0, 272, 1, 128, false> {
  struct Unit {
    const uint8_t* p;
    __m512 d;
    __m512i high, low;  // bits 2 t, 2 t + 1 and nibble t are tile t's
  };
  static RIDGE_INLINE Unit open(const uint8_t* p) {
    const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32));
    return {p, load_halves(p), _mm512_cvtepu16_epi32(high), avx512::load(p + 64)};
  }
  template <int t>
  static RIDGE_INLINE void load(const Unit& unit, Tile& tile) {
    const __m512i low = _mm512_and_si512(_mm512_srli_epi32(unit.low, 4 * t), _mm512_set1_epi32(15));
    const __m512i high = t < 2 ? _mm512_slli_epi32(unit.high, t < 2 ? 4 - 2 * t : 0)
                               : _mm512_srli_epi32(unit.high, t < 2 ? 0 : 2 * t - 4);
    const __m512i scale = _mm512_ternarylogic_epi32(low, high, _mm512_set1_epi32(0x30), 0xf8);
    tile.s[0] = scaled(unit.d, _mm512_sub_epi32(scale, _mm512_set1_epi32(32)));
    nibble_halves(unit.p + 128 + 256 * t, tile);
    look_up(iq4_table(), tile);
  }
};

// Calls f.operator()<t>() for the tiles t of one unit.
template <int count, int t = 0, class F>
RIDGE_INLINE void for_tiles(const F& f) {
  if constexpr (t < count) {
    f.template operator()<t>();
    for_tiles<count, t + 1>(f);
  }
}

// Bytes of a panel, as panel_bytes() has it.
template <class Format>
RIDGE_INLINE size_t panel_stride(size_t cols) {
  const size_t tiles = cols / kTileColumns;
  const size_t rest = tiles % Format::kUnitTiles;
  const size_t last = rest == 0 ? 0 : Format::kHeader + rest * Format::kTileBytes;
  return (tiles / Format::kUnitTiles * Format::kUnitBytes + last + 63) / 64 * 64;
}

// Rows [0, 16) of the outputs that exist.
RIDGE_INLINE __mmask16 row_mask(size_t rows) { return static_cast<__mmask16>(rows >= 16 ? 0xffffu : (1u << rows) - 1); }

}  // namespace
}  // namespace ridge::avx512
