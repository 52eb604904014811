// Matrix products with float activations. Tiles of 32 columns become floats in L1 (8 KiB for four panels), then one
// loop serves every type: four panels × one token, or one panel × four tokens, 16 registers of accumulators either way.

#include "kernels/entries.h"
#include "kernels/neon/tiles.h"

namespace ridge::neon {
namespace {

constexpr size_t kPanels = 4, kTokenBlock = 32;

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

struct Block {
  alignas(64) float w[kPanels][kTileColumns * 16];
  alignas(64) float acc[kPanels][kTokenBlock][16];
};

// acc[panel + p][token + t] continued over `columns` columns. x: the activations of the first token at the first
// column.
template <int Panels, int Tokens>
RIDGE_INLINE void multiply(Block& block, size_t panel, size_t token, const float* x, size_t x_stride, size_t columns) {
  F acc[Panels][Tokens];
  repeat<Panels * Tokens>([&]<int i>() __attribute__((always_inline)) {
    acc[i / Tokens][i % Tokens] = Vec::load(block.acc[panel + i / Tokens][token + i % Tokens]);
  });
  for (size_t c = 0; c < columns; ++c) {
    repeat<Panels>([&]<int p>() __attribute__((always_inline)) {
      const F w = Vec::load(block.w[panel + p] + 16 * c);
      repeat<Tokens>([&]<int t>() __attribute__((always_inline)) {
        acc[p][t] = Vec::fma(w, Vec::set(x[t * x_stride + c]), acc[p][t]);
      });
    });
  }
  repeat<Panels * Tokens>([&]<int i>() __attribute__((always_inline)) {
    Vec::store(block.acc[panel + i / Tokens][token + i % Tokens], acc[i / Tokens][i % Tokens]);
  });
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

}  // namespace

#define RIDGE_NEON_FLOAT(type) \
  { Op::matmul_float, Isa::neon, Type::type, kBitNeon, RIDGE_KERNEL(matmul_float<type>), "neon" }

const KernelEntry kMatmulFloatEntries[] = {
    RIDGE_NEON_FLOAT(F32),  RIDGE_NEON_FLOAT(F16),   RIDGE_NEON_FLOAT(BF16),   RIDGE_NEON_FLOAT(Q4_0),
    RIDGE_NEON_FLOAT(Q4_1), RIDGE_NEON_FLOAT(Q5_0),  RIDGE_NEON_FLOAT(Q5_1),   RIDGE_NEON_FLOAT(Q8_0),
    RIDGE_NEON_FLOAT(Q2_K), RIDGE_NEON_FLOAT(Q3_K),  RIDGE_NEON_FLOAT(Q4_K),   RIDGE_NEON_FLOAT(Q5_K),
    RIDGE_NEON_FLOAT(Q6_K), RIDGE_NEON_FLOAT(MXFP4), RIDGE_NEON_FLOAT(IQ4_NL), RIDGE_NEON_FLOAT(IQ4_XS),
};
const size_t kMatmulFloatCount = sizeof(kMatmulFloatEntries) / sizeof(kMatmulFloatEntries[0]);

}  // namespace ridge::neon
