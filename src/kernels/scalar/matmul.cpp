// Matrix products straight from the contract in kernels.h: one accumulator per output, k in order, std::fma. This is
// what every other matmul must equal byte for byte, so it is written to be read, not to be fast: blocks are taken back
// out of the panel and decoded by the reference code of tensor/.
#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/check.h"
#include "kernels/entries.h"
#include "tensor/blocks.h"
#include "tensor/panel_format.h"

namespace ridge::scalar {
namespace {

constexpr size_t kTile = 32;        // columns that share an activation scale
constexpr size_t kSumColumns = 16;  // columns per entry of Q8Rows::sums

void clear(const MatmulArgs& args) {
  for (size_t t = 0; t < args.tokens; ++t) std::fill_n(args.out + t * args.out_stride, args.rows, 0.0f);
}

// acc continued over one decoded block of `info.block` columns from column `begin` of token t.
float dot_block(const BlockInfo& info, const DecodedBlock& block, const Q8Rows& x, size_t t, size_t begin, float acc) {
  const int8_t* q = x.q + t * x.q_stride + begin;
  const float* d = x.d + t * x.d_stride + begin / kTile;
  const int32_t* sums = x.sums + 2 * (t * x.d_stride) + begin / kSumColumns;
  for (size_t g = 0; g < info.block / info.group; ++g) {
    int32_t dot = 0;
    for (size_t i = g * info.group; i < (g + 1) * info.group; ++i) dot += (block.code[i] - info.zero) * q[i];
    const float d_group = d[g * info.group / kTile];
    acc = std::fma(static_cast<float>(dot), block.scale[g] * d_group, acc);
    if (!info.has_min) continue;
    int32_t sum = 0;
    for (size_t s = g * info.group / kSumColumns; s < (g + 1) * info.group / kSumColumns; ++s) sum += sums[s];
    acc = std::fma(block.min[g], d_group * static_cast<float>(sum), acc);
  }
  return acc;
}

template <Type type>
void matmul_q8(const MatmulArgs& args) {
  const BlockInfo& info = *block_info(type);
  const PanelFormat& format = panel_format(type);
  RIDGE_CHECK(args.cols % info.block == 0, "columns are whole blocks");
  clear(args);
  const size_t bytes = panel_bytes(type, args.cols);
  uint8_t file_block[kMaxBlockBytes];
  DecodedBlock block;
  for (size_t r = 0; r < args.rows; ++r) {
    for (size_t b = 0; b < args.cols / info.block; ++b) {
      gather_block(format, args.panels + r / kPanelRows * bytes, b, r % kPanelRows, file_block);
      info.decode(file_block, block);
      for (size_t t = 0; t < args.tokens; ++t) {
        float& acc = args.out[t * args.out_stride + r];
        acc = dot_block(info, block, args.x8, t, b * info.block, acc);
      }
    }
  }
}

template <Type type>
void matmul_float(const MatmulArgs& args) {
  const TypeInfo& info = type_info(type);
  const PanelFormat& format = panel_format(type);
  RIDGE_CHECK(args.cols % info.block == 0, "columns are whole blocks");
  clear(args);
  const size_t bytes = panel_bytes(type, args.cols);
  uint8_t file_block[kMaxBlockBytes];
  float w[kMaxBlock];
  for (size_t r = 0; r < args.rows; ++r) {
    for (size_t b = 0; b < args.cols / info.block; ++b) {
      gather_block(format, args.panels + r / kPanelRows * bytes, b, r % kPanelRows, file_block);
      info.dequantize(file_block, w, info.block);
      for (size_t t = 0; t < args.tokens; ++t) {
        const float* x = args.x + t * args.x_stride + b * info.block;
        float acc = args.out[t * args.out_stride + r];
        for (size_t i = 0; i < info.block; ++i) acc = std::fma(w[i], x[i], acc);
        args.out[t * args.out_stride + r] = acc;
      }
    }
  }
}

}  // namespace

#define RIDGE_SCALAR_Q8(type) \
  { Op::matmul_q8, Isa::scalar, Type::type, 0, RIDGE_KERNEL(matmul_q8<Type::type>), "scalar" }
#define RIDGE_SCALAR_FLOAT(type) \
  { Op::matmul_float, Isa::scalar, Type::type, 0, RIDGE_KERNEL(matmul_float<Type::type>), "scalar" }

const KernelEntry kMatmulQ8Entries[] = {
    RIDGE_SCALAR_Q8(Q4_0),   RIDGE_SCALAR_Q8(Q4_1),  RIDGE_SCALAR_Q8(Q5_0),    RIDGE_SCALAR_Q8(Q5_1),
    RIDGE_SCALAR_Q8(Q8_0),   RIDGE_SCALAR_Q8(Q2_K),  RIDGE_SCALAR_Q8(Q3_K),    RIDGE_SCALAR_Q8(Q4_K),
    RIDGE_SCALAR_Q8(Q5_K),   RIDGE_SCALAR_Q8(Q6_K),  RIDGE_SCALAR_Q8(IQ4_NL),  RIDGE_SCALAR_Q8(IQ4_XS),
    RIDGE_SCALAR_Q8(MXFP4),  RIDGE_SCALAR_Q8(IQ1_S), RIDGE_SCALAR_Q8(IQ1_M),   RIDGE_SCALAR_Q8(IQ2_XXS),
    RIDGE_SCALAR_Q8(IQ2_XS), RIDGE_SCALAR_Q8(IQ2_S), RIDGE_SCALAR_Q8(IQ3_XXS), RIDGE_SCALAR_Q8(IQ3_S),
    RIDGE_SCALAR_Q8(TQ1_0),  RIDGE_SCALAR_Q8(TQ2_0),
};
const size_t kMatmulQ8Count = sizeof(kMatmulQ8Entries) / sizeof(kMatmulQ8Entries[0]);

const KernelEntry kMatmulFloatEntries[] = {
    RIDGE_SCALAR_FLOAT(F32),   RIDGE_SCALAR_FLOAT(F16),     RIDGE_SCALAR_FLOAT(BF16),    RIDGE_SCALAR_FLOAT(Q4_0),
    RIDGE_SCALAR_FLOAT(Q4_1),  RIDGE_SCALAR_FLOAT(Q5_0),    RIDGE_SCALAR_FLOAT(Q5_1),    RIDGE_SCALAR_FLOAT(Q8_0),
    RIDGE_SCALAR_FLOAT(Q2_K),  RIDGE_SCALAR_FLOAT(Q3_K),    RIDGE_SCALAR_FLOAT(Q4_K),    RIDGE_SCALAR_FLOAT(Q5_K),
    RIDGE_SCALAR_FLOAT(Q6_K),  RIDGE_SCALAR_FLOAT(IQ4_NL),  RIDGE_SCALAR_FLOAT(IQ4_XS),  RIDGE_SCALAR_FLOAT(MXFP4),
    RIDGE_SCALAR_FLOAT(IQ1_S), RIDGE_SCALAR_FLOAT(IQ1_M),   RIDGE_SCALAR_FLOAT(IQ2_XXS), RIDGE_SCALAR_FLOAT(IQ2_XS),
    RIDGE_SCALAR_FLOAT(IQ2_S), RIDGE_SCALAR_FLOAT(IQ3_XXS), RIDGE_SCALAR_FLOAT(IQ3_S),   RIDGE_SCALAR_FLOAT(TQ1_0),
    RIDGE_SCALAR_FLOAT(TQ2_0),
};
const size_t kMatmulFloatCount = sizeof(kMatmulFloatEntries) / sizeof(kMatmulFloatEntries[0]);

}  // namespace ridge::scalar
