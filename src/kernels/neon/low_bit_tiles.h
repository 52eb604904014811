// The panel layouts of the IQ1, IQ2, IQ3 and TQ types in NEON, as tiles.h has those of the others. How signs and
// indices become weights is told in docs/panels.md.
//
// NEON has no gather: the indices of 4 rows leave a register one by one. As one look-up yields 4 or 8 columns, a tile
// is unfolded at once, into 512 bytes of L1, and as its table may hold any byte, to weights rather than codes. One
// function per type serves all tiles and products: inlined eight times it would fill an instruction cache.
//
// Not for: other ISAs, or code outside this folder, neondot/ and neoni8mm/ (everything has internal linkage).
//
//   alignas(64) uint8_t weights[kTileBytes];
//   IQ2_S::unfold(unit, 3, weights);                 // tile 3: [quad][row][column], signed
#pragma once

#include "kernels/neon/tiles.h"
#include "tensor/codebooks.h"

// g++ makes a copy for every tile number that it knows.
#if defined(__clang__)
#define RIDGE_ONE_COPY __attribute__((noinline))
#else
#define RIDGE_ONE_COPY __attribute__((noinline, noclone))
#endif

namespace ridge::neon {
namespace {

RIDGE_INLINE uint8x16_t lane_field(uint8x16_t v, int shift, uint32_t mask) {
  const uint32x4_t moved = vshlq_u32(vreinterpretq_u32_u8(v), vdupq_n_s32(-shift));
  return vreinterpretq_u8_u32(moved & vdupq_n_u32(mask));
}
// (v >> shift) & mask in every lane; a negative shift goes left.
RIDGE_INLINE Codes lane_field(Codes v, int shift, uint32_t mask) {
  return each(v, [=](uint8x16_t x) { return lane_field(x, shift, mask); });
}
RIDGE_INLINE F to_float(Codes v) {
  const auto one = [](uint8x16_t x) { return vcvtq_f32_u32(vreinterpretq_u32_u8(x)); };
  return {one(v.a), one(v.b), one(v.c), one(v.d)};
}

RIDGE_INLINE Codes entries(const uint32_t* table, Codes index) {
  return each(index, [table](uint8x16_t x) {
    const uint32x4_t i = vreinterpretq_u32_u8(x);
    const uint32x4_t found = {table[vgetq_lane_u32(i, 0)], table[vgetq_lane_u32(i, 1)], table[vgetq_lane_u32(i, 2)],
                              table[vgetq_lane_u32(i, 3)]};
    return vreinterpretq_u8_u32(found);
  });
}

// The odd bits of byte 3 hold four other bits where the eighth signs of the four groups belong: each is the parity of
// its group's seven, which are bits 2 j and 2 j + 1 of bytes 0 to 2 and bit 2 j of byte 3.
RIDGE_INLINE Codes with_eighth_signs(Codes planes) {
  return each(planes, [](uint8x16_t x) {
    const uint32x4_t v = vreinterpretq_u32_u8(x), odd = vdupq_n_u32(0xaa000000u), stored = vbicq_u32(v, odd);
    const uint32x4_t all = vshlq_n_u32(v, 8) ^ vshlq_n_u32(v, 16) ^ vshlq_n_u32(v, 24) ^ stored;
    return vreinterpretq_u8_u32(vbslq_u32(odd, all ^ vshlq_n_u32(all, 1), stored));
  });
}

// The four other bits as a number.
RIDGE_INLINE F other_bits(Codes planes) {
  Codes v = lane_field(planes, 25, 0x55);
  v = lane_field(v | lane_field(v, 1, 0x55), 0, 0x33);
  return to_float(lane_field(v | lane_field(v, 2, 0x33), 0, 0x0f));
}

// d · (2 · scale + 1); the factor is exact.
RIDGE_INLINE void store_odd_scale(Scales& out, int group, F d, F scale) {
  store_scale(out, group, d, Vec::fma(scale, Vec::set(2.0f), Vec::set(1.0f)));
}
// The scales of a type whose sign words carry them: d · factor · (2 · scale + 1), tile t's word at p + step · t.
RIDGE_INLINE void scales_of_signs(const uint8_t* unit, const uint8_t* p, int step, float factor, Scales& out) {
  const F d = Vec::mul(load_halves(unit), Vec::set(factor));
  for (int t = 0; t < 8; ++t) store_odd_scale(out, t, d, other_bits(load(p + step * t)));
}
// Scales of IQ2_XS and IQ2_S: nibble g of two words.
RIDGE_INLINE void nibble_scales(const uint8_t* unit, const uint8_t* p, Scales& out) {
  const F d = Vec::mul(load_halves(unit), Vec::set(0.125f));
  for (int g = 0; g < 16; ++g) {
    store_odd_scale(out, g, d, to_float(lane_field(load(p + 64 * (g / 8)), 4 * (g % 8), 15)));
  }
}

// Weights of codes 0 … 2, negative with the sign in bit 2 (IQ3: bit 3).
constexpr int8_t kIq2Weights[16] = {8, 25, 43, 0, -8, -25, -43};
constexpr int8_t kIq3XxsWeights[16] = {4, 12, 20, 28, 36, 44, 52, 62, -4, -12, -20, -28, -36, -44, -52, -62};
constexpr int8_t kIq3SWeights[16] = {1, 3, 5, 7, 9, 11, 13, 15, -1, -3, -5, -7, -9, -11, -13, -15};
// 8 · (code − 1) + 1, or − 1 with delta's sign in bit 2.
constexpr int8_t kIq1Weights[16] = {-7, 1, 9, 0, -9, -1, 7};

RIDGE_INLINE Codes look_up(const int8_t (&table)[16], Codes codes) {
  const uint8x16_t t = vreinterpretq_u8_s8(vld1q_s8(table));
  return each(codes, [t](uint8x16_t x) { return vqtbl1q_u8(t, x); });
}

// A type with a codebook: unfold() gives a tile's weights at once. `groups` per tile; `largest` magnitude of a weight.
template <size_t unit_bytes, int groups, int largest>
struct CodebookLayout : Layout<8, 0, unit_bytes / 8, groups, 0, largest, false> {
  static constexpr bool kCodebook = true;
};

// ---- Entries of 8 codes ---------------------------------------------------------------------------------------------

// A tile from its four groups: index<j>() are the entries' numbers of columns 8 j … 8 j + 7, signs<q>() what joins the
// codes of quad q.
template <class Index, class Signs>
RIDGE_INLINE void eights(const uint32_t* grid, const int8_t (&table)[16], Index index, Signs signs, uint8_t* weights) {
  repeat<4>([&]<int j>() __attribute__((always_inline)) {
    const Codes entry = entries(grid, index.template operator()<j>());
    store(weights + 128 * j, look_up(table, bits<0, 15>(entry) | signs.template operator()<2 * j>()));
    store(weights + 128 * j + 64, look_up(table, bits<4, 15>(entry) | signs.template operator()<2 * j + 1>()));
  });
}
// The same with the signs of a tile in planes.
template <class Index>
RIDGE_INLINE void iq2_tile(const uint32_t* grid, Index index, Codes planes, uint8_t* weights) {
  eights(
      grid, kIq2Weights, index, [&]<int q>() __attribute__((always_inline)) { return bits<q - 2, 4>(planes); },
      weights);
}
// `bit` + `step` · j of `high` says whether the delta of group j is negative.
template <class Index>
RIDGE_INLINE void iq1_tile(Index index, Codes high, int bit, int step, uint8_t* weights) {
  const auto below = [&]<int q>() __attribute__((always_inline)) {
    return each(lane_field(high, bit + step * (q / 2), 1),
                [](uint8x16_t x) { return vreinterpretq_u8_u32(vreinterpretq_u32_u8(x) * 0x04040404u); });
  };
  eights(kIq1Grid, kIq1Weights, index, below, weights);
}

struct IQ2_XXS : CodebookLayout<1056, 1, 43> {
  static RIDGE_INLINE void scales(const uint8_t* unit, Scales& out) {
    scales_of_signs(unit, unit + 96, 128, 0.125f, out);
  }
  static RIDGE_ONE_COPY void unfold(const uint8_t* unit, int t, uint8_t* weights) {
    const Codes low = load(unit + 32 + 128 * t);
    iq2_tile(
        kIq2XxsGrid, [&]<int j>() __attribute__((always_inline)) { return lane_field(low, 8 * j, 255); },
        with_eighth_signs(load(unit + 96 + 128 * t)), weights);
  }
};

struct IQ2_XS : CodebookLayout<1184, 2, 43> {
  static RIDGE_INLINE void scales(const uint8_t* unit, Scales& out) { nibble_scales(unit, unit + 32, out); }
  static RIDGE_ONE_COPY void unfold(const uint8_t* unit, int t, uint8_t* weights) {
    const Codes low = load(unit + 160 + 128 * t), stored = load(unit + 224 + 128 * t);
    const auto index = [&]<int j>() __attribute__((always_inline)) {
      return lane_field(low, 8 * j, 255) | lane_field(stored, 17 + 2 * j, 0x100);
    };
    iq2_tile(kIq2XsGrid, index, with_eighth_signs(stored), weights);
  }
};

struct IQ2_S : CodebookLayout<1312, 2, 43> {
  static RIDGE_INLINE void scales(const uint8_t* unit, Scales& out) { nibble_scales(unit, unit + 160, out); }
  static RIDGE_ONE_COPY void unfold(const uint8_t* unit, int t, uint8_t* weights) {
    const Codes low = load(unit + 288 + 64 * t), high = load(unit + 32 + 64 * (t / 4));
    const auto index = [&]<int j>() __attribute__((always_inline)) {
      return lane_field(low, 8 * j, 255) | lane_field(high, 8 * (t % 4) + 2 * j - 8, 0x300);
    };
    iq2_tile(kIq2SGrid, index, load(unit + 800 + 64 * t), weights);
  }
};

struct IQ1_S : CodebookLayout<800, 1, 9> {
  static RIDGE_INLINE void scales(const uint8_t* unit, Scales& out) {
    const F d = Vec::mul(load_halves(unit), Vec::set(0.125f));
    for (int t = 0; t < 8; ++t) {
      store_odd_scale(out, t, d, to_float(lane_field(load(unit + 32 + 64 * (t / 2)), 16 * (t % 2) + 12, 7)));
    }
  }
  static RIDGE_ONE_COPY void unfold(const uint8_t* unit, int t, uint8_t* weights) {
    const Codes low = load(unit + 288 + 64 * t), high = load(unit + 32 + 64 * (t / 2));
    const int first = 16 * (t % 2);
    const auto index = [&]<int j>() __attribute__((always_inline)) {
      return lane_field(low, 8 * j, 255) | lane_field(high, first + 3 * j - 8, 0x700);
    };
    iq1_tile(index, high, first + 15, 0, weights);
  }
};

struct IQ1_M : CodebookLayout<896, 2, 9> {
  // The f16 scale lies in the top nibbles of four 16-bit words.
  static RIDGE_INLINE F block_scale(Codes s0, Codes s1) {
    const Codes halves =
        lane_field(s0, 12, 0x0f) | lane_field(s0, 24, 0xf0) | lane_field(s1, 4, 0xf00) | lane_field(s1, 16, 0xf000);
    const auto one = [](uint8x16_t x) { return Vec::widen_half(vmovn_u32(vreinterpretq_u32_u8(x))); };
    return Vec::mul({one(halves.a), one(halves.b), one(halves.c), one(halves.d)}, Vec::set(0.125f));
  }
  static RIDGE_INLINE void scales(const uint8_t* unit, Scales& out) {
    const F d = block_scale(load(unit), load(unit + 64));
    for (int g = 0; g < 16; ++g) {
      const Codes word = load(unit + 64 * (g / 8));
      store_odd_scale(out, g, d, to_float(lane_field(word, 16 * (g / 4 % 2) + 3 * (g % 4), 7)));
    }
  }
  static RIDGE_ONE_COPY void unfold(const uint8_t* unit, int t, uint8_t* weights) {
    const Codes low = load(unit + 384 + 64 * t), high = load(unit + 128 + 64 * (t / 2));
    const int first = 16 * (t % 2);
    const auto index = [&]<int j>() __attribute__((always_inline)) {
      return lane_field(low, 8 * j, 255) | lane_field(high, first + 4 * j - 8, 0x700);
    };
    iq1_tile(index, high, first + 3, 4, weights);
  }
};

// ---- Entries of 4 codes ---------------------------------------------------------------------------------------------

// A tile from its eight quads; index<q>() are the entries' numbers of quad q.
template <class Index>
RIDGE_INLINE void iq3_tile(const uint32_t* grid, const int8_t (&table)[16], Index index, Codes planes,
                           uint8_t* weights) {
  repeat<kQuads>([&]<int q>() __attribute__((always_inline)) {
    store(weights + 64 * q, look_up(table, entries(grid, index.template operator()<q>()) | bits<q - 3, 8>(planes)));
  });
}

struct IQ3_XXS : CodebookLayout<1568, 1, 62> {
  static RIDGE_INLINE void scales(const uint8_t* unit, Scales& out) {
    scales_of_signs(unit, unit + 32, 64, 0.25f, out);
  }
  static RIDGE_ONE_COPY void unfold(const uint8_t* unit, int t, uint8_t* weights) {
    const auto index = [&]<int q>() __attribute__((always_inline)) {
      return lane_field(load(unit + 544 + 128 * t + 64 * (q / 4)), 8 * (q % 4), 255);
    };
    iq3_tile(kIq3XxsGrid, kIq3XxsWeights, index, with_eighth_signs(load(unit + 32 + 64 * t)), weights);
  }
};

struct IQ3_S : CodebookLayout<1760, 1, 15> {
  static RIDGE_INLINE void scales(const uint8_t* unit, Scales& out) {
    const F d = load_halves(unit);
    for (int t = 0; t < 8; ++t) store_odd_scale(out, t, d, to_float(lane_field(load(unit + 32), 4 * t, 15)));
  }
  static RIDGE_ONE_COPY void unfold(const uint8_t* unit, int t, uint8_t* weights) {
    const Codes high = load(unit + 96 + 64 * (t / 4));
    const auto index = [&]<int q>() __attribute__((always_inline)) {
      const Codes low = load(unit + 736 + 128 * t + 64 * (q / 4));
      return lane_field(low, 8 * (q % 4), 255) | lane_field(high, 8 * (t % 4) + q - 8, 0x100);
    };
    iq3_tile(kIq3SGrid, kIq3SWeights, index, load(unit + 224 + 64 * t), weights);
  }
};

// ---- Ternary digits -------------------------------------------------------------------------------------------------

// Ternary digit n of every byte: the top of (byte · 3^n mod 256) · 3, which is how many of 86 and 171 the byte reaches.
template <int n>
RIDGE_INLINE Codes ternary_digits(Codes v) {
  constexpr uint8_t kPowers[] = {1, 3, 9, 27, 81};
  const uint8x16_t power = vdupq_n_u8(kPowers[n]);
  return each(v, [power](uint8x16_t x) {
    const uint8x16_t moved = x * power;
    return vshrq_n_u8(vcgeq_u8(moved, vdupq_n_u8(86)), 7) - vcgeq_u8(moved, vdupq_n_u8(171));
  });
}

struct TQ1_0 : Layout<8, 0, 108, 1, 1, 2, false> {
  static RIDGE_INLINE void scales(const uint8_t* unit, Scales& out) {
    for (int t = 0; t < 8; ++t) Vec::store(out.s[t], load_halves(unit));
  }
  template <int t, int q>
  static RIDGE_INLINE Codes quad(const uint8_t* unit) {
    if constexpr (t < 5) {
      return ternary_digits<t>(load(unit + 96 + 64 * q));
    } else if constexpr (t == 7 && q >= 4) {
      return ternary_digits<q - 4>(load(unit + 32));
    } else {
      return ternary_digits<2 * (t - 5) + q / 4>(load(unit + 608 + 64 * (q % 4)));
    }
  }
};

struct TQ2_0 : Layout<8, 0, 132, 1, 1, 3, false> {
  static RIDGE_INLINE void scales(const uint8_t* unit, Scales& out) { TQ1_0::scales(unit, out); }
  template <int t, int q>
  static RIDGE_INLINE Codes quad(const uint8_t* unit) {
    return bits<2 * (t % 4), 3>(load(unit + 32 + 64 * (8 * (t / 4) + q)));
  }
};

}  // namespace
}  // namespace ridge::neon
