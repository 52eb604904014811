// The panel layouts of the IQ1, IQ2, IQ3 and TQ types in AVX2, as tiles.h has those of the others. How signs and
// indices become codes is told in docs/panels.md.
//
// Not for: other ISAs, or code outside this folder and avxvnni/ (everything has internal linkage).
#pragma once

#include "kernels/avx2/tiles.h"
#include "tensor/codebooks.h"

namespace ridge::avx2 {
namespace {

// (v >> shift) & mask in every lane; a negative shift goes left.
RIDGE_INLINE __m256i lane_field(__m256i v, int shift, int mask) {
  v = shift >= 0 ? _mm256_srl_epi32(v, _mm_cvtsi32_si128(shift)) : _mm256_sll_epi32(v, _mm_cvtsi32_si128(-shift));
  return _mm256_and_si256(v, _mm256_set1_epi32(mask));
}
RIDGE_INLINE I lane_field(I v, int shift, int mask) {
  return {lane_field(v.low, shift, mask), lane_field(v.high, shift, mask)};
}

RIDGE_INLINE __m256i entries(const uint32_t* table, __m256i index) {
  return _mm256_mask_i32gather_epi32(_mm256_setzero_si256(), reinterpret_cast<const int*>(table), index,
                                     _mm256_set1_epi32(-1), 4);
}
RIDGE_INLINE I entries(const uint32_t* table, I index) {
  return {entries(table, index.low), entries(table, index.high)};
}

// The odd bits of byte 3 hold four other bits where the eighth signs of the four groups belong: each is the parity of
// its group's seven, which are bits 2 j and 2 j + 1 of bytes 0 to 2 and bit 2 j of byte 3.
RIDGE_INLINE __m256i with_eighth_signs(__m256i planes) {
  const __m256i odd = _mm256_set1_epi32(static_cast<int>(0xaa000000));
  const __m256i stored = _mm256_andnot_si256(odd, planes);
  const __m256i three = _mm256_xor_si256(_mm256_xor_si256(_mm256_slli_epi32(planes, 8), _mm256_slli_epi32(planes, 16)),
                                         _mm256_slli_epi32(planes, 24));
  const __m256i all = _mm256_xor_si256(three, stored);
  const __m256i parity = _mm256_xor_si256(all, _mm256_add_epi32(all, all));
  return _mm256_or_si256(stored, _mm256_and_si256(parity, odd));
}
RIDGE_INLINE I with_eighth_signs(I planes) { return {with_eighth_signs(planes.low), with_eighth_signs(planes.high)}; }

// The four other bits as a number.
RIDGE_INLINE __m256i other_bits(__m256i planes) {
  __m256i v = lane_field(planes, 25, 0x55);
  v = _mm256_and_si256(_mm256_or_si256(v, _mm256_srli_epi32(v, 1)), _mm256_set1_epi32(0x33));
  return _mm256_and_si256(_mm256_or_si256(v, _mm256_srli_epi32(v, 2)), _mm256_set1_epi32(0x0f));
}

// d · (2 · scale + 1); the factor is exact.
RIDGE_INLINE void store_odd_scale(Scales& out, int group, F d, F scale) {
  store_scale(out, group, d, Vec::fma(scale, Vec::set(2.0f), Vec::set(1.0f)));
}
// The scales of a type whose sign words carry them: d · factor · (2 · scale + 1), tile t's word at p + step · t.
RIDGE_INLINE void scales_of_signs(const uint8_t* unit, const uint8_t* p, int step, float factor, Scales& out) {
  const F d = Vec::mul(load_halves(unit), Vec::set(factor));
  for (int t = 0; t < 8; ++t) {
    const I word = load(p + step * t);
    store_odd_scale(out, t, d, {_mm256_cvtepi32_ps(other_bits(word.low)), _mm256_cvtepi32_ps(other_bits(word.high))});
  }
}
// Scales of IQ2_XS and IQ2_S: nibble g of two words.
RIDGE_INLINE void nibble_scales(const uint8_t* unit, const uint8_t* p, Scales& out) {
  const F d = Vec::mul(load_halves(unit), Vec::set(0.125f));
  for (int g = 0; g < 16; ++g) store_odd_scale(out, g, d, lane_bits(load(p + 64 * (g / 8)), 4 * (g % 8), 15));
}

// zero + value for codes 0 … 2, zero − value with the sign in bit 2 (IQ3: bit 3).
RIDGE_INLINE __m128i iq2_table() { return _mm_setr_epi8(51, 68, 86, 0, 35, 18, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0); }
RIDGE_INLINE __m128i iq3_xxs_table() {
  return _mm_setr_epi8(66, 74, 82, 90, 98, 106, 114, 124, 58, 50, 42, 34, 26, 18, 10, 0);
}
RIDGE_INLINE __m128i iq3_s_table() { return _mm_setr_epi8(16, 18, 20, 22, 24, 26, 28, 30, 14, 12, 10, 8, 6, 4, 2, 0); }
// 8 · (code − 1) + 1 + 9, or − 1 with delta's sign in bit 2.
RIDGE_INLINE __m128i iq1_table() { return _mm_setr_epi8(2, 10, 18, 0, 0, 8, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0); }

// Quad q from its entry of 8 codes, and the planes of its tile.
RIDGE_INLINE I iq2_codes(I entry, I planes, int q) {
  return look_up(iq2_table(), bits(entry, 4 * (q % 2), 15) | bits(planes, q - 2, 4));
}
// `bit` of a lane says whether delta is negative.
RIDGE_INLINE __m256i delta_sign(__m256i v, int bit) {
  const __m256i sign = _mm256_srai_epi32(_mm256_sll_epi32(v, _mm_cvtsi32_si128(31 - bit)), 31);
  return _mm256_and_si256(sign, _mm256_set1_epi8(4));
}
RIDGE_INLINE I iq1_codes(I entry, I high, int bit, int q) {
  const I below = {delta_sign(high.low, bit), delta_sign(high.high, bit)};
  return look_up(iq1_table(), bits(entry, 4 * (q % 2), 15) | below);
}

struct IQ2_XXS : Layout<8, 1056, 1, 43, 86, false> {
  static RIDGE_INLINE void scales(const uint8_t* unit, Scales& out) {
    scales_of_signs(unit, unit + 96, 128, 0.125f, out);
  }
  static RIDGE_INLINE I quad(const uint8_t* unit, int tile, int q) {
    const I index = lane_field(load(unit + 32 + 128 * tile), 8 * (q / 2), 255);
    return iq2_codes(entries(kIq2XxsGrid, index), with_eighth_signs(load(unit + 96 + 128 * tile)), q);
  }
};

struct IQ2_XS : Layout<8, 1184, 2, 43, 86, false> {
  static RIDGE_INLINE void scales(const uint8_t* unit, Scales& out) { nibble_scales(unit, unit + 32, out); }
  static RIDGE_INLINE I quad(const uint8_t* unit, int tile, int q) {
    const I low = load(unit + 160 + 128 * tile), stored = load(unit + 224 + 128 * tile);
    const I index = lane_field(low, 8 * (q / 2), 255) | lane_field(stored, 17 + 2 * (q / 2), 0x100);
    return iq2_codes(entries(kIq2XsGrid, index), with_eighth_signs(stored), q);
  }
};

struct IQ2_S : Layout<8, 1312, 2, 43, 86, false> {
  static RIDGE_INLINE void scales(const uint8_t* unit, Scales& out) { nibble_scales(unit, unit + 160, out); }
  static RIDGE_INLINE I quad(const uint8_t* unit, int tile, int q) {
    const I low = load(unit + 288 + 64 * tile), high = load(unit + 32 + 64 * (tile / 4));
    const I index = lane_field(low, 8 * (q / 2), 255) | lane_field(high, 8 * (tile % 4) + 2 * (q / 2) - 8, 0x300);
    return iq2_codes(entries(kIq2SGrid, index), load(unit + 800 + 64 * tile), q);
  }
};

struct IQ3_XXS : Layout<8, 1568, 1, 62, 124, false> {
  static RIDGE_INLINE void scales(const uint8_t* unit, Scales& out) {
    scales_of_signs(unit, unit + 32, 64, 0.25f, out);
  }
  static RIDGE_INLINE I quad(const uint8_t* unit, int tile, int q) {
    const I index = lane_field(load(unit + 544 + 128 * tile + 64 * (q / 4)), 8 * (q % 4), 255);
    const I planes = with_eighth_signs(load(unit + 32 + 64 * tile));
    return look_up(iq3_xxs_table(), entries(kIq3XxsGrid, index) | bits(planes, q - 3, 8));
  }
};

struct IQ3_S : Layout<8, 1760, 1, 15, 30, false> {
  static RIDGE_INLINE void scales(const uint8_t* unit, Scales& out) {
    const F d = load_halves(unit);
    for (int t = 0; t < 8; ++t) store_odd_scale(out, t, d, lane_bits(load(unit + 32), 4 * t, 15));
  }
  static RIDGE_INLINE I quad(const uint8_t* unit, int tile, int q) {
    const I low = load(unit + 736 + 128 * tile + 64 * (q / 4)), high = load(unit + 96 + 64 * (tile / 4));
    const I index = lane_field(low, 8 * (q % 4), 255) | lane_field(high, 8 * (tile % 4) + q - 8, 0x100);
    return look_up(iq3_s_table(), entries(kIq3SGrid, index) | bits(load(unit + 224 + 64 * tile), q - 3, 8));
  }
};

struct IQ1_S : Layout<8, 800, 1, 9, 18, false> {
  static RIDGE_INLINE void scales(const uint8_t* unit, Scales& out) {
    const F d = Vec::mul(load_halves(unit), Vec::set(0.125f));
    for (int t = 0; t < 8; ++t) {
      store_odd_scale(out, t, d, lane_bits(load(unit + 32 + 64 * (t / 2)), 16 * (t % 2) + 12, 7));
    }
  }
  static RIDGE_INLINE I quad(const uint8_t* unit, int tile, int q) {
    const I low = load(unit + 288 + 64 * tile), high = load(unit + 32 + 64 * (tile / 2));
    const int first = 16 * (tile % 2);
    const I index = lane_field(low, 8 * (q / 2), 255) | lane_field(high, first + 3 * (q / 2) - 8, 0x700);
    return iq1_codes(entries(kIq1Grid, index), high, first + 15, q);
  }
};

struct IQ1_M : Layout<8, 896, 2, 9, 18, false> {
  // The f16 scale lies in the top nibbles of four 16-bit words.
  static RIDGE_INLINE __m256 scale(const uint8_t* unit, int half) {
    const __m256i s0 = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(unit + 32 * half));
    const __m256i s1 = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(unit + 64 + 32 * half));
    const __m256i bits_0 = _mm256_or_si256(lane_field(s0, 12, 0x0f), lane_field(s0, 24, 0xf0));
    const __m256i bits_8 = _mm256_or_si256(lane_field(s1, 4, 0xf00), lane_field(s1, 16, 0xf000));
    const __m256i halves = _mm256_or_si256(bits_0, bits_8);
    const __m128i packed = _mm_packus_epi32(_mm256_castsi256_si128(halves), _mm256_extracti128_si256(halves, 1));
    return _mm256_mul_ps(_mm256_cvtph_ps(packed), _mm256_set1_ps(0.125f));
  }
  static RIDGE_INLINE void scales(const uint8_t* unit, Scales& out) {
    const F d = {scale(unit, 0), scale(unit, 1)};
    for (int g = 0; g < 16; ++g) {
      store_odd_scale(out, g, d, lane_bits(load(unit + 64 * (g / 8)), 16 * (g / 4 % 2) + 3 * (g % 4), 7));
    }
  }
  static RIDGE_INLINE I quad(const uint8_t* unit, int tile, int q) {
    const I low = load(unit + 384 + 64 * tile), high = load(unit + 128 + 64 * (tile / 2));
    const int first = 16 * (tile % 2) + 4 * (q / 2);
    const I index = lane_field(low, 8 * (q / 2), 255) | lane_field(high, first - 8, 0x700);
    return iq1_codes(entries(kIq1Grid, index), high, first + 3, q);
  }
};

// Ternary digit n of every byte: the top of (byte · 3^n mod 256) · 3, which is how many of 86 and 171 the byte reaches.
RIDGE_INLINE __m256i ternary_digits(__m256i v, int n) {
  for (int i = 0; i < n; ++i) v = _mm256_add_epi8(v, _mm256_add_epi8(v, v));
  const __m256i one = _mm256_set1_epi8(1);
  return _mm256_add_epi8(_mm256_min_epu8(_mm256_subs_epu8(v, _mm256_set1_epi8(85)), one),
                         _mm256_min_epu8(_mm256_subs_epu8(v, _mm256_set1_epi8(static_cast<char>(170))), one));
}

struct TQ1_0 : Layout<8, 864, 1, 1, 2, false> {
  static RIDGE_INLINE void scales(const uint8_t* unit, Scales& out) {
    for (int t = 0; t < 8; ++t) Vec::store(out.s[t], load_halves(unit));
  }
  static RIDGE_INLINE I quad(const uint8_t* unit, int tile, int q) {
    const uint8_t* p = unit + 96 + 64 * q;
    int digit = tile;
    if (tile >= 5) {
      p = unit + 608 + 64 * (q % 4);
      digit = 2 * (tile - 5) + q / 4;
    }
    if (tile == 7 && q >= 4) {
      p = unit + 32;
      digit = q - 4;
    }
    const I v = load(p);
    return {ternary_digits(v.low, digit), ternary_digits(v.high, digit)};
  }
};

struct TQ2_0 : Layout<8, 1056, 1, 1, 3, false> {
  static RIDGE_INLINE void scales(const uint8_t* unit, Scales& out) { TQ1_0::scales(unit, out); }
  static RIDGE_INLINE I quad(const uint8_t* unit, int tile, int q) {
    return bits(load(unit + 32 + 64 * (8 * (tile / 4) + q)), 2 * (tile % 4), 3);
  }
};

}  // namespace
}  // namespace ridge::avx2
