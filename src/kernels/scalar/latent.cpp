// The reference of what attention over latents (MLA, docs/models/deepseek2.md) needs beside matrix products: the
// transpose of a matrix in panels, one row's softmax over one chunk, and the merging of chunks. See kernels.h.

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "kernels/entries.h"
#include "kernels/math.h"

namespace ridge::scalar {
namespace {

constexpr size_t kColumns = 256;  // unfolded at a time: whole blocks of every type

void transpose(const TransposeArgs& args) {
  RIDGE_CHECK(args.cols % kPanelRows == 0, "the transpose has whole panels");
  const size_t bytes = panel_bytes(args.type, args.cols);
  float values[kColumns * kPanelRows];
  for (size_t row = 0; row < args.rows; row += kPanelRows) {
    const size_t rows = std::min(kPanelRows, args.rows - row);
    for (size_t col = 0; col < args.cols; col += kColumns) {
      const size_t columns = std::min(kColumns, args.cols - col);
      dequantize_panel(args.type, args.panels + row / kPanelRows * bytes, args.cols, col, columns, values);
      for (size_t c = 0; c < columns; ++c) {
        float* out = args.out + ((col + c) / 16 * args.rows + row) * 16 + (col + c) % 16;
        for (size_t r = 0; r < rows; ++r) out[16 * r] = values[c * kPanelRows + r];
      }
    }
  }
}

float soften(float* scores, size_t n, float scale, float* max) {
  float largest = -HUGE_VALF;
  for (size_t i = 0; i < n; ++i) {
    scores[i] = scores[i] * scale;
    largest = scores[i] > largest ? scores[i] : largest;
  }
  float lane[16] = {};
  for (size_t i = 0; i < n; ++i) {
    scores[i] = exp_f32(scores[i] - largest);
    lane[i % 16] += scores[i];
  }
  for (size_t step = 8; step > 0; step /= 2) {
    for (size_t i = 0; i < step; ++i) lane[i] = lane[i] + lane[i + step];
  }
  *max = largest;
  return lane[0];
}

void merge_chunk(const float* o, size_t n, float max, float sum, float* merged, float* out) {
  if (merged[1] == 0) {
    merged[0] = max;
    merged[1] = sum;
    std::copy_n(o, n, out);
    return;
  }
  const float new_max = max > merged[0] ? max : merged[0];
  const float old_factor = exp_f32(merged[0] - new_max), new_factor = exp_f32(max - new_max);
  for (size_t i = 0; i < n; ++i) out[i] = std::fma(out[i], old_factor, o[i] * new_factor);
  merged[1] = std::fma(merged[1], old_factor, sum * new_factor);
  merged[0] = new_max;
}

}  // namespace

const KernelEntry kLatentEntries[] = {
    {Op::transpose, Isa::scalar, Type::F32, 0, RIDGE_KERNEL(transpose), "scalar"},
    {Op::soften, Isa::scalar, Type::F32, 0, RIDGE_KERNEL(soften), "scalar"},
    {Op::merge_chunk, Isa::scalar, Type::F32, 0, RIDGE_KERNEL(merge_chunk), "scalar"},
};
const size_t kLatentCount = sizeof(kLatentEntries) / sizeof(kLatentEntries[0]);

}  // namespace ridge::scalar
