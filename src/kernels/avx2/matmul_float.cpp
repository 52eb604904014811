// Matrix products with float activations. Tiles of 32 columns become floats in L1 (8 KiB for four panels), then one
// loop serves every type: four panels × one token, or one panel × four tokens, eight accumulators either way.

#include "kernels/avx2/low_bit_tiles.h"
#include "kernels/avx2/tiles.h"
#include "kernels/avx2/vec.h"
#include "kernels/entries.h"
#include "kernels/simd/latent.h"

namespace ridge::avx2 {
namespace {

constexpr size_t kTileColumns = 32, kPanels = 4, kTokenBlock = 32;

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

struct Block {
  alignas(64) float w[kPanels][kTileColumns * 16];
  alignas(64) float acc[kPanels][kTokenBlock][16];
};

// acc[panel + p][token + t] continued over `columns` columns. x: the activations of the first token at the first
// column.
template <size_t Panels, size_t Tokens>
RIDGE_INLINE void multiply(Block& block, size_t panel, size_t token, const float* x, size_t x_stride, size_t columns) {
  F acc[Panels][Tokens];
  for (size_t p = 0; p < Panels; ++p) {
    for (size_t t = 0; t < Tokens; ++t) acc[p][t] = Vec::load(block.acc[panel + p][token + t]);
  }
  for (size_t c = 0; c < columns; ++c) {
    F w[Panels];
    for (size_t p = 0; p < Panels; ++p) w[p] = Vec::load(block.w[panel + p] + 16 * c);
    for (size_t t = 0; t < Tokens; ++t) {
      const F activation = Vec::set(x[t * x_stride + c]);
      for (size_t p = 0; p < Panels; ++p) acc[p][t] = Vec::fma(w[p], activation, acc[p][t]);
    }
  }
  for (size_t p = 0; p < Panels; ++p) {
    for (size_t t = 0; t < Tokens; ++t) Vec::store(block.acc[panel + p][token + t], acc[p][t]);
  }
}

// One tile of `panels` panels with all tokens of the block.
void multiply_tile(Block& block, size_t panels, size_t tokens, const float* x, size_t x_stride, size_t columns) {
  size_t t = 0;
  for (; t + 4 <= tokens; t += 4) {
    for (size_t p = 0; p < panels; ++p) multiply<1, 4>(block, p, t, x + t * x_stride, x_stride, columns);
  }
  for (; t < tokens; ++t) {
    if (panels == kPanels) {
      multiply<kPanels, 1>(block, 0, t, x + t * x_stride, x_stride, columns);
    } else {
      for (size_t p = 0; p < panels; ++p) multiply<1, 1>(block, p, t, x + t * x_stride, x_stride, columns);
    }
  }
}

// The outputs of up to four panels for up to 32 tokens.
template <class Format>
void multiply_block(const MatmulArgs& args, size_t first_panel, size_t panels, size_t first_token, size_t tokens) {
  Block block;
  Reader<Format> readers[kPanels];
  const size_t bytes = Reader<Format>::panel_bytes(args.cols);
  for (size_t p = 0; p < panels; ++p) {
    readers[p].unit = args.panels + (first_panel + p) * bytes;
    for (size_t t = 0; t < tokens; ++t) Vec::store(block.acc[p][t], Vec::zero());
  }
  for (size_t c = 0; c < args.cols; c += kTileColumns) {
    const size_t columns = args.cols - c < kTileColumns ? args.cols - c : kTileColumns;
    for (size_t p = 0; p < panels; ++p) readers[p].next(columns, block.w[p]);
    multiply_tile(block, panels, tokens, args.x + first_token * args.x_stride + c, args.x_stride, columns);
  }
  for (size_t p = 0; p < panels; ++p) {
    const size_t row = (first_panel + p) * kPanelRows;
    const size_t rows = args.rows - row < kPanelRows ? args.rows - row : kPanelRows;
    for (size_t t = 0; t < tokens; ++t) {
      Vec::store(args.out + (first_token + t) * args.out_stride + row, Vec::load(block.acc[p][t]), rows);
    }
  }
}

template <class Format>
void matmul_float(const MatmulArgs& args) {
  const size_t panels = (args.rows + kPanelRows - 1) / kPanelRows;
  for (size_t panel = 0; panel < panels; panel += kPanels) {
    const size_t panel_count = panels - panel < kPanels ? panels - panel : kPanels;
    for (size_t token = 0; token < args.tokens; token += kTokenBlock) {
      const size_t tokens = args.tokens - token < kTokenBlock ? args.tokens - token : kTokenBlock;
      multiply_block<Format>(args, panel, panel_count, token, tokens);
    }
  }
}

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
  { Op::matmul_float, Isa::avx2, Type::type, kBitAvx2Fma, RIDGE_KERNEL(matmul_float<type>), "avx2" }

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
