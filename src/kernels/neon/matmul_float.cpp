// Matrix products with float activations: what turns panels into floats, for simd/float_products.h.

#include "kernels/entries.h"
#include "kernels/neon/tiles.h"
#include "kernels/simd/float_products.h"

namespace ridge::neon {
namespace {

// Reads a panel tile by tile, in order: next(w) writes 32 columns × 16 rows of floats, w[column * 16 + row].
template <class Format>
struct Reader {
  const uint8_t* unit;
  int tile = 0;
  Scales scales;

  static size_t panel_bytes(size_t cols) { return Format::panel_bytes(cols); }

  template <int t>
  void unfold(float* w) const {
    const F zero = Vec::set(static_cast<float>(Format::kZero));
    repeat<kQuads>([&]<int q>() __attribute__((always_inline)) {
      constexpr int g = t * Format::kGroups + q * Format::kGroups / kQuads;
      const Codes codes = Format::template quad<t, q>(unit);
      repeat<4>([&]<int i>() __attribute__((always_inline)) {
        F value = Vec::mul(Vec::sub(lane_bits<8 * i, 255>(codes), zero), Vec::load(scales.s[g]));  // exact
        if constexpr (Format::kHasMin) value = Vec::add(value, Vec::load(scales.m[g]));
        Vec::store(w + 16 * (4 * q + i), value);
      });
    });
  }
  void next(size_t /*columns*/, float* w) {
    if (tile == 0) Format::scales(unit, scales);
    repeat<Format::kUnitTiles>([&]<int t>() {
      if (tile == t) unfold<t>(w);
    });
    if (++tile == Format::kUnitTiles) tile = 0, unit += Format::kUnitBytes;
  }
};

struct F32 {};
struct F16 {};
struct BF16 {};

template <>
struct Reader<F32> {
  const uint8_t* unit;

  static size_t panel_bytes(size_t cols) { return 64 * cols; }
  void next(size_t columns, float* w) {
    memcpy(w, unit, 64 * columns);
    unit += 64 * columns;
  }
};

template <>
struct Reader<F16> {
  const uint8_t* unit;

  static size_t panel_bytes(size_t cols) { return (32 * cols + 63) / 64 * 64; }
  void next(size_t columns, float* w) {
    for (size_t c = 0; c < columns; ++c) Vec::store(w + 16 * c, load_halves(unit + 32 * c));
    unit += 32 * columns;
  }
};

template <>
struct Reader<BF16> {
  const uint8_t* unit;

  static size_t panel_bytes(size_t cols) { return (32 * cols + 63) / 64 * 64; }
  static RIDGE_INLINE float32x4_t widen(const uint8_t* p) {
    uint16x4_t halves;
    memcpy(&halves, p, 8);
    return vreinterpretq_f32_u32(vshll_n_u16(halves, 16));
  }
  void next(size_t columns, float* w) {
    for (size_t c = 0; c < columns; ++c, unit += 32) {
      Vec::store(w + 16 * c, {widen(unit), widen(unit + 8), widen(unit + 16), widen(unit + 24)});
    }
  }
};

using Products = simd::FloatProducts<Vec, Reader>;

}  // namespace

#define RIDGE_NEON_FLOAT(type) \
  { Op::matmul_float, Isa::neon, Type::type, kBitNeon, RIDGE_KERNEL(Products::run<type>), "neon" }

const KernelEntry kMatmulFloatEntries[] = {
    RIDGE_NEON_FLOAT(F32),  RIDGE_NEON_FLOAT(F16),   RIDGE_NEON_FLOAT(BF16),   RIDGE_NEON_FLOAT(Q4_0),
    RIDGE_NEON_FLOAT(Q4_1), RIDGE_NEON_FLOAT(Q5_0),  RIDGE_NEON_FLOAT(Q5_1),   RIDGE_NEON_FLOAT(Q8_0),
    RIDGE_NEON_FLOAT(Q2_K), RIDGE_NEON_FLOAT(Q3_K),  RIDGE_NEON_FLOAT(Q4_K),   RIDGE_NEON_FLOAT(Q5_K),
    RIDGE_NEON_FLOAT(Q6_K), RIDGE_NEON_FLOAT(MXFP4), RIDGE_NEON_FLOAT(IQ4_NL), RIDGE_NEON_FLOAT(IQ4_XS),
};
const size_t kMatmulFloatCount = sizeof(kMatmulFloatEntries) / sizeof(kMatmulFloatEntries[0]);

}  // namespace ridge::neon
