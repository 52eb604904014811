// The panel layouts of the IQ1, IQ2, IQ3 and TQ types in AVX-512, as matmul_tiles.h has those of the others.
//
// An IQ weight is an entry of a codebook (tensor/codebooks.h) with a sign: gathers fetch the entries of 16 rows, the
// sign bits join the codes, and one byte shuffle turns both into the unsigned code. The tables are 1 to 8 KiB and stay
// in L1.
//
// Not for: other ISAs, or code outside this folder (everything has internal linkage).
#pragma once

#include "kernels/avx512/matmul_tiles.h"
#include "tensor/codebooks.h"

namespace ridge::avx512 {
namespace {

// d · (2 · scale + 1)
RIDGE_INLINE __m512 odd_scaled(__m512 d, __m512i scale) {
  return scaled(d, _mm512_add_epi32(_mm512_add_epi32(scale, scale), _mm512_set1_epi32(1)));
}
// Entry `index` of every lane. (The form with a source operand: g++ 12 warns of its own undefined one.)
RIDGE_INLINE __m512i entries(const uint32_t* table, __m512i index) {
  return _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), 0xffff, index, table, 4);
}
// Nibble n of a byte vector: n = 0 low, 1 high; here of byte i of every lane.
template <int i, int n>
RIDGE_INLINE __m512i nibble_of_byte(__m512i v) {
  return _mm512_and_si512(_mm512_srli_epi32(v, 8 * i + 4 * n), _mm512_set1_epi32(15));
}
// low | (v >> shift) & mask in every lane; a negative shift goes left.
template <int shift>
RIDGE_INLINE __m512i or_lane_bits(__m512i low, __m512i v, int mask) {
  if constexpr (shift > 0) v = _mm512_srli_epi32(v, shift);
  if constexpr (shift < 0) v = _mm512_slli_epi32(v, -shift);
  return _mm512_ternarylogic_epi32(low, v, _mm512_set1_epi32(mask), 0xf8);
}

// The odd bits of byte 3 hold four other bits where the eighth signs of the four groups belong: each is the parity of
// its group's seven, which are bits 2 j and 2 j + 1 of bytes 0 to 2 and bit 2 j of byte 3.
RIDGE_INLINE __m512i with_eighth_signs(__m512i planes) {
  const __m512i odd = _mm512_set1_epi32(static_cast<int>(0xaa000000));
  const __m512i three = _mm512_ternarylogic_epi32(_mm512_slli_epi32(planes, 8), _mm512_slli_epi32(planes, 16),
                                                  _mm512_slli_epi32(planes, 24), 0x96);  // a ^ b ^ c
  const __m512i all = _mm512_ternarylogic_epi32(three, planes, odd, 0xb4);               // a ^ (b & ~c)
  const __m512i parity = _mm512_xor_si512(all, _mm512_add_epi32(all, all));
  return _mm512_ternarylogic_epi32(odd, parity, planes, 0xca);  // a ? b : c
}
// The four other bits as a number.
RIDGE_INLINE __m512i other_bits(__m512i planes) {
  __m512i v = _mm512_and_si512(_mm512_srli_epi32(planes, 25), _mm512_set1_epi32(0x55));
  v = _mm512_ternarylogic_epi32(v, _mm512_srli_epi32(v, 1), _mm512_set1_epi32(0x33), 0xa8);  // (a | b) & c
  return _mm512_ternarylogic_epi32(v, _mm512_srli_epi32(v, 2), _mm512_set1_epi32(0x0f), 0xa8);
}

// zero + value for codes 0 … 2, zero − value with the sign in bit 2.
RIDGE_INLINE __m512i iq2_table() {
  return _mm512_broadcast_i32x4(_mm_setr_epi8(51, 68, 86, 0, 35, 18, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
}
RIDGE_INLINE __m512i iq3_xxs_table() {  // the sign in bit 3
  return _mm512_broadcast_i32x4(_mm_setr_epi8(66, 74, 82, 90, 98, 106, 114, 124, 58, 50, 42, 34, 26, 18, 10, 0));
}
RIDGE_INLINE __m512i iq3_s_table() {
  return _mm512_broadcast_i32x4(_mm_setr_epi8(16, 18, 20, 22, 24, 26, 28, 30, 14, 12, 10, 8, 6, 4, 2, 0));
}
// 8 · (code − 1) + 1 + 9, or − 1 with delta's sign in bit 2.
RIDGE_INLINE __m512i iq1_table() {
  return _mm512_broadcast_i32x4(_mm_setr_epi8(2, 10, 18, 0, 0, 8, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0));
}

// Quads 2 j and 2 j + 1 from an entry of 8 codes.
template <int j>
RIDGE_INLINE void iq2_quads(__m512i entry, __m512i planes, Tile& tile) {
  const __m512i low = bits<0>(entry, 15), high = bits<4>(entry, 15);
  tile.q[2 * j] = _mm512_shuffle_epi8(iq2_table(), or_bits<2 * j - 2>(low, planes, 4));
  tile.q[2 * j + 1] = _mm512_shuffle_epi8(iq2_table(), or_bits<2 * j - 1>(high, planes, 4));
}
template <int v>
RIDGE_INLINE void iq3_quad(__m512i table, __m512i entry, __m512i planes, Tile& tile) {
  tile.q[v] = _mm512_shuffle_epi8(table, or_bits<v - 3>(entry, planes, 8));
}
// `below`: 0x44444444 where delta is negative.
template <int j>
RIDGE_INLINE void iq1_quads(__m512i entry, __m512i below, Tile& tile) {
  const __m512i codes = _mm512_or_si512(entry, below);
  tile.q[2 * j] = _mm512_shuffle_epi8(iq1_table(), bits<0>(codes, 15));
  tile.q[2 * j + 1] = _mm512_shuffle_epi8(iq1_table(), bits<4>(codes, 15));
}
// 0x44444444 where bit `bit` of a lane is set.
template <int bit>
RIDGE_INLINE __m512i delta_signs(__m512i v) {
  return _mm512_and_si512(_mm512_srai_epi32(_mm512_slli_epi32(v, 31 - bit), 31), _mm512_set1_epi32(0x44444444));
}

// Where a unit begins, and its f16 scales times a power of two that the type's formula has.
struct Scaled {
  const uint8_t* p;
  __m512 d;
};
RIDGE_INLINE Scaled open_scaled(const uint8_t* p, float factor) {
  return {p, _mm512_mul_ps(load_halves(p), _mm512_set1_ps(factor))};
}

struct IQ2_XXS : Layout<8, 0, 132, 1, 43, false> {
  using Unit = Scaled;
  static RIDGE_INLINE Unit open(const uint8_t* p) { return open_scaled(p, 0.125f); }
  template <int t>
  static RIDGE_INLINE void load(const Unit& unit, Tile& tile) {
    const __m512i index = avx512::load(unit.p + 32 + 128 * t), stored = avx512::load(unit.p + 96 + 128 * t);
    const __m512i planes = with_eighth_signs(stored);
    tile.s[0] = odd_scaled(unit.d, other_bits(stored));
    iq2_quads<0>(entries(kIq2XxsGrid, unsigned_byte<0>(index)), planes, tile);
    iq2_quads<1>(entries(kIq2XxsGrid, unsigned_byte<1>(index)), planes, tile);
    iq2_quads<2>(entries(kIq2XxsGrid, unsigned_byte<2>(index)), planes, tile);
    iq2_quads<3>(entries(kIq2XxsGrid, unsigned_byte<3>(index)), planes, tile);
  }
};

// Scales of IQ2_XS and IQ2_S: byte t of two vectors has those of both groups of tile t.
template <int t>
RIDGE_INLINE void nibble_scales(__m512 d, const uint8_t* p, Tile& tile) {
  const __m512i v = load(p + 64 * (t / 4));
  tile.s[0] = odd_scaled(d, nibble_of_byte<t % 4, 0>(v));
  tile.s[1] = odd_scaled(d, nibble_of_byte<t % 4, 1>(v));
}

struct IQ2_XS : Layout<8, 0, 148, 2, 43, false> {
  using Unit = Scaled;
  static RIDGE_INLINE Unit open(const uint8_t* p) { return open_scaled(p, 0.125f); }
  template <int j>
  static RIDGE_INLINE void group(__m512i low, __m512i stored, __m512i planes, Tile& tile) {
    const __m512i index = or_lane_bits<17 + 2 * j>(unsigned_byte<j>(low), stored, 0x100);
    iq2_quads<j>(entries(kIq2XsGrid, index), planes, tile);
  }
  template <int t>
  static RIDGE_INLINE void load(const Unit& unit, Tile& tile) {
    const __m512i low = avx512::load(unit.p + 160 + 128 * t), stored = avx512::load(unit.p + 224 + 128 * t);
    const __m512i planes = with_eighth_signs(stored);
    nibble_scales<t>(unit.d, unit.p + 32, tile);
    group<0>(low, stored, planes, tile);
    group<1>(low, stored, planes, tile);
    group<2>(low, stored, planes, tile);
    group<3>(low, stored, planes, tile);
  }
};

struct IQ2_S : Layout<8, 0, 164, 2, 43, false> {
  using Unit = Scaled;
  static RIDGE_INLINE Unit open(const uint8_t* p) { return open_scaled(p, 0.125f); }
  // `high`: bits 2 j, 2 j + 1 of byte t % 4 are the high bits of index j.
  template <int t, int j>
  static RIDGE_INLINE void group(__m512i low, __m512i high, __m512i planes, Tile& tile) {
    const __m512i index = or_lane_bits<8 * (t % 4) + 2 * j - 8>(unsigned_byte<j>(low), high, 0x300);
    iq2_quads<j>(entries(kIq2SGrid, index), planes, tile);
  }
  template <int t>
  static RIDGE_INLINE void load(const Unit& unit, Tile& tile) {
    const __m512i low = avx512::load(unit.p + 288 + 64 * t), planes = avx512::load(unit.p + 800 + 64 * t);
    const __m512i high = avx512::load(unit.p + 32 + 64 * (t / 4));
    nibble_scales<t>(unit.d, unit.p + 160, tile);
    group<t, 0>(low, high, planes, tile);
    group<t, 1>(low, high, planes, tile);
    group<t, 2>(low, high, planes, tile);
    group<t, 3>(low, high, planes, tile);
  }
};

struct IQ3_XXS : Layout<8, 0, 196, 1, 62, false> {
  using Unit = Scaled;
  static RIDGE_INLINE Unit open(const uint8_t* p) { return open_scaled(p, 0.25f); }
  // Quads 4 h … 4 h + 3.
  template <int h>
  static RIDGE_INLINE void half(__m512i index, __m512i planes, Tile& tile) {
    iq3_quad<4 * h>(iq3_xxs_table(), entries(kIq3XxsGrid, unsigned_byte<0>(index)), planes, tile);
    iq3_quad<4 * h + 1>(iq3_xxs_table(), entries(kIq3XxsGrid, unsigned_byte<1>(index)), planes, tile);
    iq3_quad<4 * h + 2>(iq3_xxs_table(), entries(kIq3XxsGrid, unsigned_byte<2>(index)), planes, tile);
    iq3_quad<4 * h + 3>(iq3_xxs_table(), entries(kIq3XxsGrid, unsigned_byte<3>(index)), planes, tile);
  }
  template <int t>
  static RIDGE_INLINE void load(const Unit& unit, Tile& tile) {
    const __m512i stored = avx512::load(unit.p + 32 + 64 * t);
    const __m512i planes = with_eighth_signs(stored);
    tile.s[0] = odd_scaled(unit.d, other_bits(stored));
    half<0>(avx512::load(unit.p + 544 + 128 * t), planes, tile);
    half<1>(avx512::load(unit.p + 608 + 128 * t), planes, tile);
  }
};

struct IQ3_S : Layout<8, 0, 220, 1, 15, false> {
  using Unit = Scaled;
  static RIDGE_INLINE Unit open(const uint8_t* p) { return {p, load_halves(p)}; }
  // Quad v; its index: byte v % 4 and bit v of byte t % 4 of `high`.
  template <int t, int v>
  static RIDGE_INLINE void quad(__m512i low, __m512i high, __m512i planes, Tile& tile) {
    const __m512i index = or_lane_bits<8 * (t % 4) + v - 8>(unsigned_byte<v % 4>(low), high, 0x100);
    iq3_quad<v>(iq3_s_table(), entries(kIq3SGrid, index), planes, tile);
  }
  template <int t>
  static RIDGE_INLINE void load(const Unit& unit, Tile& tile) {
    const __m512i high = avx512::load(unit.p + 96 + 64 * (t / 4)), planes = avx512::load(unit.p + 224 + 64 * t);
    tile.s[0] = odd_scaled(unit.d, nibble_of_byte<t / 2, t % 2>(avx512::load(unit.p + 32)));
    const __m512i first = avx512::load(unit.p + 736 + 128 * t), second = avx512::load(unit.p + 800 + 128 * t);
    quad<t, 0>(first, high, planes, tile);
    quad<t, 1>(first, high, planes, tile);
    quad<t, 2>(first, high, planes, tile);
    quad<t, 3>(first, high, planes, tile);
    quad<t, 4>(second, high, planes, tile);
    quad<t, 5>(second, high, planes, tile);
    quad<t, 6>(second, high, planes, tile);
    quad<t, 7>(second, high, planes, tile);
  }
};

struct IQ1_S : Layout<8, 0, 100, 1, 9, false> {
  using Unit = Scaled;
  static RIDGE_INLINE Unit open(const uint8_t* p) { return open_scaled(p, 0.125f); }
  // `high`: the tile's 16 bits begin at bit 16 (t % 2).
  template <int t, int j>
  static RIDGE_INLINE void group(__m512i low, __m512i high, __m512i below, Tile& tile) {
    const __m512i index = or_lane_bits<16 * (t % 2) + 3 * j - 8>(unsigned_byte<j>(low), high, 0x700);
    iq1_quads<j>(entries(kIq1Grid, index), below, tile);
  }
  template <int t>
  static RIDGE_INLINE void load(const Unit& unit, Tile& tile) {
    constexpr int kFirst = 16 * (t % 2);
    const __m512i high = avx512::load(unit.p + 32 + 64 * (t / 2)), low = avx512::load(unit.p + 288 + 64 * t);
    const __m512i below = delta_signs<kFirst + 15>(high);
    tile.s[0] = odd_scaled(unit.d, _mm512_and_si512(_mm512_srli_epi32(high, kFirst + 12), _mm512_set1_epi32(7)));
    group<t, 0>(low, high, below, tile);
    group<t, 1>(low, high, below, tile);
    group<t, 2>(low, high, below, tile);
    group<t, 3>(low, high, below, tile);
  }
};

struct IQ1_M : Layout<8, 0, 112, 2, 9, false> {
  using Unit = Scaled;
  // The f16 scale lies in the top nibbles of four 16-bit words.
  static RIDGE_INLINE Unit open(const uint8_t* p) {
    const __m512i s0 = avx512::load(p), s1 = avx512::load(p + 64);
    __m512i half = _mm512_and_si512(_mm512_srli_epi32(s0, 12), _mm512_set1_epi32(15));
    half = or_lane_bits<24>(half, s0, 0xf0);
    half = or_lane_bits<4>(half, s1, 0xf00);
    half = or_lane_bits<16>(half, s1, 0xf000);
    return {p, _mm512_mul_ps(_mm512_cvtph_ps(_mm512_cvtepi32_epi16(half)), _mm512_set1_ps(0.125f))};
  }
  template <int g>
  static RIDGE_INLINE __m512 scale(const Unit& unit) {
    const __m512i v = avx512::load(unit.p + 64 * (g / 8));
    return odd_scaled(unit.d,
                      _mm512_and_si512(_mm512_srli_epi32(v, 16 * (g / 4 % 2) + 3 * (g % 4)), _mm512_set1_epi32(7)));
  }
  // `high`: nibble 4 (t % 2) + j has 3 bits of the index and the sign of delta.
  template <int t, int j>
  static RIDGE_INLINE void group(__m512i low, __m512i high, Tile& tile) {
    constexpr int kFirst = 16 * (t % 2) + 4 * j;
    const __m512i index = or_lane_bits<kFirst - 8>(unsigned_byte<j>(low), high, 0x700);
    iq1_quads<j>(entries(kIq1Grid, index), delta_signs<kFirst + 3>(high), tile);
  }
  template <int t>
  static RIDGE_INLINE void load(const Unit& unit, Tile& tile) {
    const __m512i high = avx512::load(unit.p + 128 + 64 * (t / 2)), low = avx512::load(unit.p + 384 + 64 * t);
    tile.s[0] = scale<2 * t>(unit);
    tile.s[1] = scale<2 * t + 1>(unit);
    group<t, 0>(low, high, tile);
    group<t, 1>(low, high, tile);
    group<t, 2>(low, high, tile);
    group<t, 3>(low, high, tile);
  }
};

// Ternary digit n of every byte: the top of (byte · 3^n mod 256) · 3, which is how many of 86 and 171 the byte reaches.
template <int n>
RIDGE_INLINE __m512i ternary_digits(__m512i v) {
#pragma GCC unroll 4
  for (int i = 0; i < n; ++i) v = _mm512_add_epi8(v, _mm512_add_epi8(v, v));
  const __m512i one = byte_mask(1);
  const __m512i digit = _mm512_maskz_mov_epi8(_mm512_cmpgt_epu8_mask(v, byte_mask(85)), one);
  return _mm512_mask_add_epi8(digit, _mm512_cmpgt_epu8_mask(v, byte_mask(static_cast<char>(170))), digit, one);
}

struct TQ1_0 : Layout<8, 0, 108, 1, 1, false> {
  using Unit = Scaled;
  static RIDGE_INLINE Unit open(const uint8_t* p) { return {p, load_halves(p)}; }
  // Quads 4 h … 4 h + 3 from digit n of 4 vectors.
  template <int n>
  static RIDGE_INLINE void half(const uint8_t* p, int h, Tile& tile) {
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) tile.q[4 * h + v] = ternary_digits<n>(avx512::load(p + 64 * v));
  }
  template <int t>
  static RIDGE_INLINE void load(const Unit& unit, Tile& tile) {
    const uint8_t* p = unit.p + 96;
    tile.s[0] = unit.d;
    if constexpr (t < 5) {
      half<t>(p, 0, tile);
      half<t>(p + 256, 1, tile);
    } else if constexpr (t < 7) {
      half<2 * (t - 5)>(p + 512, 0, tile);
      half<2 * (t - 5) + 1>(p + 512, 1, tile);
    } else {
      const __m512i last = avx512::load(unit.p + 32);
      half<4>(p + 512, 0, tile);
      tile.q[4] = ternary_digits<0>(last);
      tile.q[5] = ternary_digits<1>(last);
      tile.q[6] = ternary_digits<2>(last);
      tile.q[7] = ternary_digits<3>(last);
    }
  }
};

struct TQ2_0 : Layout<8, 0, 132, 1, 1, false> {
  using Unit = Scaled;
  static RIDGE_INLINE Unit open(const uint8_t* p) { return {p, load_halves(p)}; }
  template <int t>
  static RIDGE_INLINE void load(const Unit& unit, Tile& tile) {
    tile.s[0] = unit.d;
    two_bits<t>(unit.p + 32, tile);
  }
};

}  // namespace
}  // namespace ridge::avx512
