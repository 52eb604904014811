// The panel layouts (docs/panels.md) in NEON: one struct per quantised type. A vector of the panel, 64 bytes with 4
// codes of each of 16 rows, is four registers; a tile is 32 columns, 8 such vectors (quads).
//
// Not for: other ISAs, or code outside this folder, neondot/ and neoni8mm/ (everything has internal linkage).
//
//   Scales scales;
//   Q4_K::scales(unit, scales);                      // all groups of the unit, as floats
//   Codes codes = Q4_K::quad<3, 1>(unit);            // tile 3, quad 1: lane r, byte i: code of row r, column 4 · 1 + i
#pragma once

#include "kernels/neon/vec.h"
#include "kernels/simd/repeat.h"

namespace ridge::neon {
namespace {

using F = Vec::F;

constexpr int kQuads = 8;  // of a tile
constexpr size_t kTileColumns = 32;

// 64 bytes of a panel.
struct Codes {
  uint8x16_t a, b, c, d;
};

// Scales and minima of a unit's groups; [group][row].
struct alignas(64) Scales {
  float s[16][16];
  float m[16][16];
};

using simd::repeat;

// ---- Pieces ---------------------------------------------------------------------------------------------------------

template <class Function>
RIDGE_INLINE Codes each(Codes x, Function f) {
  return {f(x.a), f(x.b), f(x.c), f(x.d)};
}

RIDGE_INLINE Codes load(const uint8_t* p) {
  return {vld1q_u8(p), vld1q_u8(p + 16), vld1q_u8(p + 32), vld1q_u8(p + 48)};
}
RIDGE_INLINE void store(uint8_t* p, Codes x) {
  vst1q_u8(p, x.a);
  vst1q_u8(p + 16, x.b);
  vst1q_u8(p + 32, x.c);
  vst1q_u8(p + 48, x.d);
}
RIDGE_INLINE F load_halves(const uint8_t* p) { return Vec::load_half(reinterpret_cast<const uint16_t*>(p)); }
RIDGE_INLINE Codes operator|(Codes x, Codes y) { return {x.a | y.a, x.b | y.b, x.c | y.c, x.d | y.d}; }

// (v >> shift) & mask in every byte; a negative shift goes left.
template <int shift, int mask>
RIDGE_INLINE Codes bits(Codes v) {
  if constexpr (shift > 0) v = each(v, [](uint8x16_t x) { return vshrq_n_u8(x, shift > 0 ? shift : 1); });
  if constexpr (shift < 0) v = each(v, [](uint8x16_t x) { return vshlq_n_u8(x, shift < 0 ? -shift : 0); });
  constexpr int kLeft = shift >= 0 ? 255 >> shift : (255 << -shift) & 255;  // bits that the shift may leave set
  if constexpr ((kLeft & ~mask) == 0) return v;
  return each(v, [](uint8x16_t x) { return x & vdupq_n_u8(mask); });
}

// (v >> shift) & mask in every 32-bit lane, as a float.
template <int shift, uint32_t mask>
RIDGE_INLINE F lane_bits(Codes v) {
  const auto one = [](uint8x16_t x) {
    uint32x4_t lanes = vreinterpretq_u32_u8(x);
    if constexpr (shift > 0) lanes = vshrq_n_u32(lanes, shift > 0 ? shift : 1);
    if constexpr (shift < 0) lanes = vshlq_n_u32(lanes, shift < 0 ? -shift : 0);
    if constexpr (shift < 0 || (0xffffffffu >> (shift < 0 ? 0 : shift) & ~mask) != 0) lanes = lanes & vdupq_n_u32(mask);
    return vcvtq_f32_u32(lanes);
  };
  return {one(v.a), one(v.b), one(v.c), one(v.d)};
}
// Byte `index` of every lane, signed, as a float.
template <int index>
RIDGE_INLINE F signed_byte(Codes v) {
  const auto one = [](uint8x16_t x) {
    const int32x4_t left = vshlq_n_s32(vreinterpretq_s32_u8(x), 24 - 8 * index);
    return vcvtq_f32_s32(vshrq_n_s32(left, 24));
  };
  return {one(v.a), one(v.b), one(v.c), one(v.d)};
}

// (v >> shift) & 3 in 16 consecutive u16, as floats.
template <int shift>
RIDGE_INLINE F half_word_bits(const uint8_t* p) {
  const auto one = [p](int i) {
    uint16x4_t word;
    memcpy(&word, p + 8 * i, 8);
    const uint32x4_t lanes = vmovl_u16(word);
    return vcvtq_f32_u32((shift > 0 ? vshrq_n_u32(lanes, shift > 0 ? shift : 1) : lanes) & vdupq_n_u32(3));
  };
  return {one(0), one(1), one(2), one(3)};
}

RIDGE_INLINE Codes look_up(const uint8_t (&table)[16], Codes nibbles) {
  const uint8x16_t t = vld1q_u8(table);
  return each(nibbles, [t](uint8x16_t x) { return vqtbl1q_u8(t, x); });
}
constexpr uint8_t kIq4Codes[16] = {1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241};  // + 128
constexpr uint8_t kMxfp4Codes[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};  // doubled, + 12

// Byte j: column j in its low nibble, column j + 16 in its high one.
template <int q>
RIDGE_INLINE Codes nibble_halves(const uint8_t* p) {
  return bits < q < 4 ? 0 : 4, 15 > (load(p + 64 * (q & 3)));
}
// The fifth bit of quad q is bit q of every byte.
template <int q>
RIDGE_INLINE Codes bit_plane(const uint8_t* p) {
  return bits<q - 4, 16>(load(p));
}

RIDGE_INLINE void store_scale(Scales& out, int group, F d, F factor) { Vec::store(out.s[group], Vec::mul(d, factor)); }
RIDGE_INLINE void store_min(Scales& out, int group, F dmin, F factor) {
  Vec::store(out.m[group], Vec::negate(Vec::mul(dmin, factor)));
}

// What all formats have. `header` and `tile_bytes` say how panels are cut, as the last unit may hold fewer tiles;
// `largest` is the largest code: how many products fit into 16 bits depends on it.
template <int unit_tiles, size_t header, size_t tile_bytes, int groups, int zero, int largest, bool has_min>
struct Layout {
  static constexpr int kUnitTiles = unit_tiles;
  static constexpr size_t kUnitBytes = header + unit_tiles * tile_bytes;
  static constexpr int kGroups = groups;  // per tile
  static constexpr int kZero = zero;
  static constexpr int kLargest = largest;
  static constexpr bool kHasMin = has_min;

  static RIDGE_INLINE size_t panel_bytes(size_t cols) {
    const size_t tiles = cols / kTileColumns, rest = tiles % unit_tiles;
    return tiles / unit_tiles * kUnitBytes + (rest == 0 ? 0 : header + rest * tile_bytes);
  }
};

// ---- Blocks of 32 columns -------------------------------------------------------------------------------------------

struct Q4_0 : Layout<2, 64, 256, 1, 8, 15, false> {
  static RIDGE_INLINE void scales(const uint8_t* unit, Scales& out) {
    Vec::store(out.s[0], load_halves(unit));
    Vec::store(out.s[1], load_halves(unit + 32));
  }
  template <int t, int q>
  static RIDGE_INLINE Codes quad(const uint8_t* unit) {
    return nibble_halves<q>(unit + 64 + 256 * t);
  }
};

struct IQ4_NL : Layout<2, 64, 256, 1, 128, 255, false> {
  static RIDGE_INLINE void scales(const uint8_t* unit, Scales& out) { Q4_0::scales(unit, out); }
  template <int t, int q>
  static RIDGE_INLINE Codes quad(const uint8_t* unit) {
    return look_up(kIq4Codes, Q4_0::quad<t, q>(unit));
  }
};

struct Q4_1 : Layout<1, 0, 320, 1, 0, 15, true> {
  static RIDGE_INLINE void scales(const uint8_t* unit, Scales& out) {
    Vec::store(out.s[0], load_halves(unit));
    Vec::store(out.m[0], load_halves(unit + 32));
  }
  template <int t, int q>
  static RIDGE_INLINE Codes quad(const uint8_t* unit) {
    return nibble_halves<q>(unit + 64);
  }
};

struct Q5_0 : Layout<2, 64, 320, 1, 16, 31, false> {
  static RIDGE_INLINE void scales(const uint8_t* unit, Scales& out) { Q4_0::scales(unit, out); }
  template <int t, int q>
  static RIDGE_INLINE Codes quad(const uint8_t* unit) {
    const uint8_t* body = unit + 64 + 320 * t;
    return nibble_halves<q>(body + 64) | bit_plane<q>(body);
  }
};

struct Q5_1 : Layout<1, 0, 384, 1, 0, 31, true> {
  static RIDGE_INLINE void scales(const uint8_t* unit, Scales& out) { Q4_1::scales(unit, out); }
  template <int t, int q>
  static RIDGE_INLINE Codes quad(const uint8_t* unit) {
    return nibble_halves<q>(unit + 128) | bit_plane<q>(unit + 64);
  }
};

struct Q8_0 : Layout<2, 64, 512, 1, 128, 255, false> {
  static RIDGE_INLINE void scales(const uint8_t* unit, Scales& out) { Q4_0::scales(unit, out); }
  template <int t, int q>
  static RIDGE_INLINE Codes quad(const uint8_t* unit) {
    return load(unit + 64 + 512 * t + 64 * q);
  }
};

struct MXFP4 : Layout<4, 64, 256, 1, 12, 24, false> {
  // 2^(e − 128): from e = 1 on the exponent field of 2^(e − 127), halved; below e = 2 the number is subnormal.
  static RIDGE_INLINE float32x4_t power(uint16x4_t exponent) {
    const uint32x4_t e = vmovl_u16(exponent);
    const uint32x4_t normal = vshlq_n_u32(e - vdupq_n_u32(1), 23);
    const uint32x4_t subnormal = vshlq_u32(vdupq_n_u32(0x00200000), vreinterpretq_s32_u32(e));
    return vreinterpretq_f32_u32(vbslq_u32(vcltq_u32(e, vdupq_n_u32(2)), subnormal, normal));
  }
  static RIDGE_INLINE void scales(const uint8_t* unit, Scales& out) {
    for (int t = 0; t < kUnitTiles; ++t) {
      const uint8x16_t e = vld1q_u8(unit + 16 * t);
      const uint16x8_t low = vmovl_u8(vget_low_u8(e)), high = vmovl_u8(vget_high_u8(e));
      Vec::store(out.s[t], {power(vget_low_u16(low)), power(vget_high_u16(low)), power(vget_low_u16(high)),
                            power(vget_high_u16(high))});
    }
  }
  template <int t, int q>
  static RIDGE_INLINE Codes quad(const uint8_t* unit) {
    return look_up(kMxfp4Codes, nibble_halves<q>(unit + 64 + 256 * t));
  }
};

// ---- Blocks of 256 columns ------------------------------------------------------------------------------------------

struct Q2_K : Layout<8, 0, 168, 2, 0, 3, true> {
  static RIDGE_INLINE void scales(const uint8_t* unit, Scales& out) {
    const F d = load_halves(unit), dmin = load_halves(unit + 32);
    repeat<4>([&]<int i>() __attribute__((always_inline)) {
      for (int g = i; g < 16; g += 4) {
        const Codes v = load(unit + 64 + 64 * (g / 4));
        store_scale(out, g, d, lane_bits<8 * i, 15>(v));
        store_min(out, g, dmin, lane_bits<8 * i + 4, 15>(v));
      }
    });
  }
  template <int t, int q>
  static RIDGE_INLINE Codes quad(const uint8_t* unit) {
    return bits<2 * (t % 4), 3>(load(unit + 320 + 64 * (8 * (t / 4) + q)));
  }
};

struct Q3_K : Layout<8, 0, 224, 2, 4, 7, false> {
  static RIDGE_INLINE void scales(const uint8_t* unit, Scales& out) {
    const F d = load_halves(unit), offset = Vec::set(32.0f);
    const Codes s0 = load(unit + 64), s1 = load(unit + 128), s2 = load(unit + 192);
    const Codes unfolded[4] = {bits<0, 15>(s0) | bits<-4, 0x30>(s2), bits<0, 15>(s1) | bits<-2, 0x30>(s2),
                               bits<4, 15>(s0) | bits<0, 0x30>(s2), bits<4, 15>(s1) | bits<2, 0x30>(s2)};
    repeat<16>([&]<int g>() __attribute__((always_inline)) {
      store_scale(out, g, d, Vec::sub(lane_bits<8 * (g % 4), 255>(unfolded[g / 4]), offset));
    });
  }
  template <int t, int q>
  static RIDGE_INLINE Codes quad(const uint8_t* unit) {
    return bits<2 * (t % 4), 3>(load(unit + 768 + 64 * (8 * (t / 4) + q))) | bits<t - 2, 4>(load(unit + 256 + 64 * q));
  }
};

struct Q4_K : Layout<8, 0, 288, 1, 0, 15, true> {
  // 8 scales and 8 minima of 6 bits in three words: four of each to a vector.
  static RIDGE_INLINE void scales(const uint8_t* unit, Scales& out) {
    const F d = load_halves(unit), dmin = load_halves(unit + 32);
    const Codes s0 = load(unit + 64), s1 = load(unit + 128), s2 = load(unit + 192);
    const Codes scale[2] = {bits<0, 63>(s0), bits<0, 15>(s2) | bits<2, 0x30>(s0)};
    const Codes minimum[2] = {bits<0, 63>(s1), bits<4, 15>(s2) | bits<2, 0x30>(s1)};
    repeat<8>([&]<int g>() __attribute__((always_inline)) {
      store_scale(out, g, d, lane_bits<8 * (g % 4), 255>(scale[g / 4]));
      store_min(out, g, dmin, lane_bits<8 * (g % 4), 255>(minimum[g / 4]));
    });
  }
  template <int t, int q>
  static RIDGE_INLINE Codes nibbles(const uint8_t* p) {
    return bits<4 * (t % 2), 15>(load(p + 64 * (8 * (t / 2) + q)));
  }
  template <int t, int q>
  static RIDGE_INLINE Codes quad(const uint8_t* unit) {
    return nibbles<t, q>(unit + 256);
  }
};

struct Q5_K : Layout<8, 0, 352, 1, 0, 31, true> {
  static RIDGE_INLINE void scales(const uint8_t* unit, Scales& out) { Q4_K::scales(unit, out); }
  template <int t, int q>
  static RIDGE_INLINE Codes quad(const uint8_t* unit) {
    return Q4_K::nibbles<t, q>(unit + 768) | bits<t - 4, 16>(load(unit + 256 + 64 * q));
  }
};

struct Q6_K : Layout<8, 0, 424, 2, 32, 63, false> {
  static RIDGE_INLINE void scales(const uint8_t* unit, Scales& out) {
    const F d = load_halves(unit);
    repeat<4>([&]<int i>() __attribute__((always_inline)) {
      for (int g = i; g < 16; g += 4) store_scale(out, g, d, signed_byte<i>(load(unit + 64 + 64 * (g / 4))));
    });
  }
  template <int t, int q>
  static RIDGE_INLINE Codes quad(const uint8_t* unit) {
    constexpr int k = t % 4;
    const Codes low = bits < k < 2 ? 0 : 4, 15 > (load(unit + 320 + 64 * (16 * (t / 4) + 8 * (k & 1) + q)));
    return low | bits<2 * k - 4, 0x30>(load(unit + 2368 + 64 * (8 * (t / 4) + q)));
  }
};

struct IQ4_XS : Layout<8, 0, 272, 1, 128, 255, false> {
  // Tile t: nibble t of the low word, bits 2 t and 2 t + 1 of the high half-word.
  static RIDGE_INLINE void scales(const uint8_t* unit, Scales& out) {
    const F d = load_halves(unit), offset = Vec::set(32.0f), sixteen = Vec::set(16.0f);
    const Codes low = load(unit + 64);
    repeat<8>([&]<int t>() __attribute__((always_inline)) {  // low + 16 · high − 32, exact in floats
      const F scale = Vec::fma(half_word_bits<2 * t>(unit + 32), sixteen, lane_bits<4 * t, 15>(low));
      store_scale(out, t, d, Vec::sub(scale, offset));
    });
  }
  template <int t, int q>
  static RIDGE_INLINE Codes quad(const uint8_t* unit) {
    return look_up(kIq4Codes, nibble_halves<q>(unit + 128 + 256 * t));
  }
};

}  // namespace
}  // namespace ridge::neon
