// Matrix products with float activations: what turns panels into floats, for simd/float_products.h; and panels of
// latents turned.

#include "kernels/avx2/low_bit_tiles.h"
#include "kernels/avx2/tiles.h"
#include "kernels/avx2/vec.h"
#include "kernels/entries.h"
#include "kernels/simd/float_products.h"
#include "kernels/simd/latent.h"

namespace ridge::avx2 {
namespace {

constexpr size_t kTileColumns = 32;

// Reads a panel tile by tile, in order: next(w) writes 32 columns × 16 rows of floats, w[column * 16 + row].
template <class Format>
struct Reader {
  const uint8_t* unit;
  int tile = 0;
  Scales scales;

  static size_t panel_bytes(size_t cols) { return Format::panel_bytes(cols); }
  void next(size_t /*columns*/, float* w) {
    if (tile == 0) Format::scales(unit, scales);
    for (int q = 0; q < kQuads; ++q) {
      const int g = tile * Format::kGroups + q * Format::kGroups / kQuads;
      const I codes = Format::quad(unit, tile, q);
      const F scale = Vec::load(scales.s[g]), zero = Vec::set(static_cast<float>(Format::kZero));
      for (int i = 0; i < 4; ++i, w += 16) {
        F value = Vec::mul(Vec::sub(lane_bits(codes, 8 * i, 255), zero), scale);  // exact
        if constexpr (Format::kHasMin) value = Vec::add(value, Vec::load(scales.m[g]));
        Vec::store(w, value);
      }
    }
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
  static RIDGE_INLINE __m256 widen(const uint8_t* p) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
  }
  void next(size_t columns, float* w) {
    for (size_t c = 0; c < columns; ++c) Vec::store(w + 16 * c, {widen(unit + 32 * c), widen(unit + 32 * c + 16)});
    unit += 32 * columns;
  }
};

using Products = simd::FloatProducts<Vec, Reader>;

template <class Format>
void transpose_as(const TransposeArgs& args) {
  alignas(64) float values[256 * 16];
  Reader<Format> reader;
  simd::Latent<Vec>::transpose(args, Reader<Format>::panel_bytes(args.cols),
                               [&](const uint8_t* panel, size_t col, size_t count) {
                                 if (col == 0) reader = Reader<Format>{}, reader.unit = panel;
                                 for (size_t c = 0; c < count; c += kTileColumns) {
                                   reader.next(count - c < kTileColumns ? count - c : kTileColumns, values + 16 * c);
                                 }
                                 return static_cast<const float*>(values);
                               });
}

void transpose(const TransposeArgs& args) {
  switch (args.type) {
    case Type::F32:
      return transpose_as<F32>(args);
    case Type::F16:
      return transpose_as<F16>(args);
    case Type::BF16:
      return transpose_as<BF16>(args);
    case Type::Q4_0:
      return transpose_as<Q4_0>(args);
    case Type::Q4_K:
      return transpose_as<Q4_K>(args);
    case Type::Q5_0:
      return transpose_as<Q5_0>(args);
    case Type::Q5_K:
      return transpose_as<Q5_K>(args);
    case Type::Q6_K:
      return transpose_as<Q6_K>(args);
    case Type::Q8_0:
      return transpose_as<Q8_0>(args);
    case Type::IQ4_NL:
      return transpose_as<IQ4_NL>(args);
    case Type::IQ4_XS:
      return transpose_as<IQ4_XS>(args);
    default:
      break;
  }
  alignas(64) float values[256 * 16];  // rarer types by the reference's values
  simd::Latent<Vec>::transpose(args, panel_bytes(args.type, args.cols),
                               [&](const uint8_t* panel, size_t col, size_t count) {
                                 dequantize_panel(args.type, panel, args.cols, col, count, values);
                                 return static_cast<const float*>(values);
                               });
}

}  // namespace

#define RIDGE_AVX2_FLOAT(type) \
  { Op::matmul_float, Isa::avx2, Type::type, kBitAvx2Fma, RIDGE_KERNEL(Products::run<type>), "avx2" }

const KernelEntry kMatmulFloatEntries[] = {
    RIDGE_AVX2_FLOAT(F32),   RIDGE_AVX2_FLOAT(F16),     RIDGE_AVX2_FLOAT(BF16),    RIDGE_AVX2_FLOAT(Q4_0),
    RIDGE_AVX2_FLOAT(Q4_1),  RIDGE_AVX2_FLOAT(Q5_0),    RIDGE_AVX2_FLOAT(Q5_1),    RIDGE_AVX2_FLOAT(Q8_0),
    RIDGE_AVX2_FLOAT(Q2_K),  RIDGE_AVX2_FLOAT(Q3_K),    RIDGE_AVX2_FLOAT(Q4_K),    RIDGE_AVX2_FLOAT(Q5_K),
    RIDGE_AVX2_FLOAT(Q6_K),  RIDGE_AVX2_FLOAT(MXFP4),   RIDGE_AVX2_FLOAT(IQ4_NL),  RIDGE_AVX2_FLOAT(IQ4_XS),
    RIDGE_AVX2_FLOAT(IQ1_S), RIDGE_AVX2_FLOAT(IQ1_M),   RIDGE_AVX2_FLOAT(IQ2_XXS), RIDGE_AVX2_FLOAT(IQ2_XS),
    RIDGE_AVX2_FLOAT(IQ2_S), RIDGE_AVX2_FLOAT(IQ3_XXS), RIDGE_AVX2_FLOAT(IQ3_S),   RIDGE_AVX2_FLOAT(TQ1_0),
    RIDGE_AVX2_FLOAT(TQ2_0),
};
const size_t kMatmulFloatCount = sizeof(kMatmulFloatEntries) / sizeof(kMatmulFloatEntries[0]);

const KernelEntry kTransposeEntries[] = {
    {Op::transpose, Isa::avx2, Type::F32, kBitAvx2Fma, RIDGE_KERNEL(transpose), "avx2"},
};
const size_t kTransposeCount = sizeof(kTransposeEntries) / sizeof(kTransposeEntries[0]);

}  // namespace ridge::avx2
