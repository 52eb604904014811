// Matrix products with float activations for vectors of 16 floats in several registers: tiles of 32 columns become
// floats in L1 (8 KiB for four panels), then one loop serves every type: four panels × one token, or one panel × four
// tokens, as many accumulators either way.
//
// V is the ISA's Vec and Reader its reader of panels, types of unnamed namespaces: see simd/math.h for why only
// templates may stand here. Reader<Format> has `unit`, where the panel is, panel_bytes(cols), and next(columns, w),
// which writes `columns` columns of 16 floats, w[column * 16 + row], tile by tile in order.
//
//   using Products = simd::FloatProducts<Vec, Reader>;
//   {Op::matmul_float, Isa::avx2, Type::Q4_0, bits, RIDGE_KERNEL(Products::run<Q4_0>), "avx2"}
#pragma once

#include <stddef.h>

#include "kernels/kernels.h"
#include "kernels/simd/repeat.h"

namespace ridge::simd {

template <class V, template <class> class Reader>
struct FloatProducts {
  using F = typename V::F;
  static constexpr size_t kTileColumns = 32, kPanels = 4, kTokenBlock = 32;

  struct Block {
    alignas(64) float w[kPanels][kTileColumns * 16];
    alignas(64) float acc[kPanels][kTokenBlock][16];
  };

  // acc[panel + p][token + t] continued over `columns` columns. x: the activations of the first token at the first
  // column.
  template <int Panels, int Tokens>
  static RIDGE_INLINE void multiply(Block& block, size_t panel, size_t token, const float* x, size_t x_stride,
                                    size_t columns) {
    F acc[Panels][Tokens];
    repeat<Panels * Tokens>([&]<int i>() __attribute__((always_inline)) {
      acc[i / Tokens][i % Tokens] = V::load(block.acc[panel + i / Tokens][token + i % Tokens]);
    });
    for (size_t c = 0; c < columns; ++c) {
      repeat<Panels>([&]<int p>() __attribute__((always_inline)) {
        const F w = V::load(block.w[panel + p] + 16 * c);
        repeat<Tokens>([&]<int t>() __attribute__((always_inline)) {
          acc[p][t] = V::fma(w, V::set(x[t * x_stride + c]), acc[p][t]);
        });
      });
    }
    repeat<Panels * Tokens>([&]<int i>() __attribute__((always_inline)) {
      V::store(block.acc[panel + i / Tokens][token + i % Tokens], acc[i / Tokens][i % Tokens]);
    });
  }

  // One tile of `panels` panels with all tokens of the block.
  static void multiply_tile(Block& block, size_t panels, size_t tokens, const float* x, size_t x_stride,
                            size_t columns) {
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
  static void multiply_block(const MatmulArgs& args, size_t first_panel, size_t panels, size_t first_token,
                             size_t tokens) {
    Block block;
    Reader<Format> readers[kPanels];
    const size_t bytes = Reader<Format>::panel_bytes(args.cols);
    for (size_t p = 0; p < panels; ++p) {
      readers[p].unit = args.panels + (first_panel + p) * bytes;
      for (size_t t = 0; t < tokens; ++t) V::store(block.acc[p][t], V::zero());
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
        V::store(args.out + (first_token + t) * args.out_stride + row, V::load(block.acc[p][t]), rows);
      }
    }
  }

  template <class Format>
  static void run(const MatmulArgs& args) {
    const size_t panels = (args.rows + kPanelRows - 1) / kPanelRows;
    for (size_t panel = 0; panel < panels; panel += kPanels) {
      const size_t panel_count = panels - panel < kPanels ? panels - panel : kPanels;
      for (size_t token = 0; token < args.tokens; token += kTokenBlock) {
        const size_t tokens = args.tokens - token < kTokenBlock ? args.tokens - token : kTokenBlock;
        multiply_block<Format>(args, panel, panel_count, token, tokens);
      }
    }
  }
};

}  // namespace ridge::simd
