// Products with BF16 weights on instructions that multiply pairs of bf16 numbers, outside the arithmetic contract:
// activations are rounded to bf16, and the order of the additions is the instruction's. Only `--numerics fast` runs
// them.
//
// Everything but the instruction is here, so that a test can run the same walk on an imitation of it. An Engine has
//   static constexpr size_t kTokens;                       // of a block
//   static void block(const Bf16Block<kTokens>& b);        // c += x · wᵀ
//   static void one_token(const MatmulArgs&);              // decode; or kHasOneToken = false
//
// Not for: other weights. F16 ones would lose bits in bf16, quantised ones have int8.
//
//   void matmul(const MatmulArgs& args) { fast::Bf16Product<Engine>::matmul(args); }
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"
#include "tensor/half.h"

namespace ridge::fast {
namespace {

constexpr size_t kBf16Columns = 512;  // of a chunk: two panels' pairs take 32 KiB
constexpr size_t kBf16Tokens = 96;    // of a round: their activations take 96 KiB
constexpr size_t kPairStep = 16;      // pairs come in multiples of this (what one matrix tile holds), padded with zeros

// Two panels × up to `tokens` tokens. x: [tokens, kBf16Columns]; w: per panel [pairs, 16 rows], the pair in one word,
// the earlier column in its low half.
template <size_t tokens>
struct Bf16Block {
  const uint16_t* x;
  const uint32_t* w[2];
  size_t pairs;
  float (*c)[tokens][16];  // [2 panels][tokens][16 rows]
};

inline size_t bf16_panel_stride(size_t cols) { return (32 * cols + 63) / 64 * 64; }

// Columns [col, col + count) of a panel as pairs; `pairs` of them, those past the end zero.
inline void gather_pairs(const uint8_t* panel, size_t col, size_t count, size_t pairs, uint32_t* out) {
  uint16_t columns[2][16];
  for (size_t p = 0; p < pairs; ++p, out += 16) {
    for (size_t i = 0; i < 2; ++i) {
      if (2 * p + i < count) {
        __builtin_memcpy(columns[i], panel + 32 * (col + 2 * p + i), 32);
      } else {
        __builtin_memset(columns[i], 0, 32);
      }
    }
    for (size_t r = 0; r < 16; ++r) out[r] = columns[0][r] | static_cast<uint32_t>(columns[1][r]) << 16;
  }
}

template <class Engine>
class Bf16Product {
 public:
  static void matmul(const MatmulArgs& args) {
    if constexpr (Engine::kHasOneToken) {
      if (args.tokens == 1) return Engine::one_token(args);
    }
    for (size_t token = 0; token < args.tokens; token += kBf16Tokens) {
      const size_t tokens = args.tokens - token < kBf16Tokens ? args.tokens - token : kBf16Tokens;
      size_t col = 0;
      do {  // also for no columns: the outputs are then zero
        const size_t count = args.cols - col < kBf16Columns ? args.cols - col : kBf16Columns;
        chunk(args, {token, tokens, col, count});
        col += count;
      } while (col < args.cols);
    }
  }

 private:
  struct Part {
    size_t token, tokens, col, count;
  };

  static void chunk(const MatmulArgs& args, const Part& part) {
    alignas(64) uint16_t x[kBf16Tokens * kBf16Columns];
    alignas(64) uint32_t w[2][kBf16Columns / 2 * 16];
    const size_t pairs = (part.count + 2 * kPairStep - 1) / (2 * kPairStep) * kPairStep;
    round_activations(args, part, pairs, x);
    for (size_t row = 0; row < args.rows; row += 32) {
      const size_t panels = args.rows - row > 16 ? 2 : 1;
      for (size_t p = 0; p < panels; ++p) {
        gather_pairs(args.panels + (row / 16 + p) * bf16_panel_stride(args.cols), part.col, part.count, pairs, w[p]);
      }
      for (size_t t = 0; t < part.tokens; t += Engine::kTokens) block(args, part, row, t, x, w, pairs);
    }
  }

  static void round_activations(const MatmulArgs& args, const Part& part, size_t pairs, uint16_t* x) {
    const size_t blocks = (part.tokens + Engine::kTokens - 1) / Engine::kTokens;
    for (size_t t = 0; t < blocks * Engine::kTokens; ++t, x += kBf16Columns) {
      const float* from = args.x + (part.token + t) * args.x_stride + part.col;
      const size_t count = t < part.tokens ? part.count : 0;
      for (size_t c = 0; c < count; ++c) x[c] = f32_to_bf16(from[c]);
      for (size_t c = count; c < 2 * pairs; ++c) x[c] = 0;
    }
  }

  static void block(const MatmulArgs& args, const Part& part, size_t row, size_t t, const uint16_t* x,
                    uint32_t (*w)[kBf16Columns / 2 * 16], size_t pairs) {
    alignas(64) float c[2][Engine::kTokens][16] = {};
    const size_t tokens = part.tokens - t < Engine::kTokens ? part.tokens - t : Engine::kTokens;
    float* out = args.out + (part.token + t) * args.out_stride + row;
    const size_t rows = args.rows - row < 32 ? args.rows - row : 32;
    for (size_t i = 0; part.col != 0 && i < tokens; ++i) {
      for (size_t r = 0; r < rows; ++r) c[r / 16][i][r % 16] = out[i * args.out_stride + r];
    }
    // A second panel that is not there is the first one again; nobody reads what becomes of it.
    Engine::block({x + t * kBf16Columns, {w[0], rows > 16 ? w[1] : w[0]}, pairs, c});
    for (size_t i = 0; i < tokens; ++i) {
      for (size_t r = 0; r < rows; ++r) out[i * args.out_stride + r] = c[r / 16][i][r % 16];
    }
  }

  static_assert(kBf16Tokens % Engine::kTokens == 0, "a round is whole blocks, or its padding would not fit");
};

}  // namespace
}  // namespace ridge::fast
