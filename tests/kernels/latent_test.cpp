// What attention over latents needs of the kernels: transposed matrices, softmax rows, merged chunks.
#include <algorithm>

#include "tensor/panel.h"
#include "tests/kernels/kernel_cases.h"
#include "tests/tensor/random_blocks.h"

namespace ridge::test {
namespace {

TEST(Transpose, EveryTypeIsTheFilesValues) {
  for (const TypeInfo& info : all_types()) {
    SCOPED_TRACE(info.name);
    for (size_t rows : {size_t{16}, size_t{48}, size_t{21}, size_t{3}}) {
      for (size_t cols : {std::max<size_t>(info.block, 32), 2 * std::max<size_t>(info.block, 32), size_t{768}}) {
        std::vector<uint8_t> file = random_rows(info.type, rows, cols, row_bytes(info.type, cols), 5);
        std::vector<uint8_t> panels(panels_bytes(info.type, rows, cols) + 64);
        uint8_t* base = panels.data() + (64 - reinterpret_cast<uintptr_t>(panels.data()) % 64) % 64;
        std::vector<float> want(rows * cols), values(cols);
        for (size_t r = 0; r < rows; ++r) {
          info.dequantize(file.data() + r * row_bytes(info.type, cols), values.data(), cols);
          for (size_t c = 0; c < cols; ++c) want[(c / 16 * rows + r) * 16 + c % 16] = values[c];
          if (r % 16 != 0) continue;
          pack_panel({.type = info.type,
                      .rows = file.data() + r * row_bytes(info.type, cols),
                      .row_stride = row_bytes(info.type, cols),
                      .row_count = std::min<size_t>(16, rows - r),
                      .cols = cols,
                      .panel = base + r / 16 * panel_bytes(info.type, cols)});
        }
        for_each_kernel<TransposeFn>(Op::transpose, [&](TransposeFn transpose) {
          std::vector<float> got(rows * cols, -1.0f);
          transpose({.type = info.type, .panels = base, .rows = rows, .cols = cols, .out = got.data()});
          EXPECT_TRUE(same_bytes(got, want)) << rows << " × " << cols;
        });
      }
    }
  }
}

TEST(Soften, SameBytesAndASoftmax) {
  auto scalar = reference<SoftenFn>(Op::soften);
  for (size_t n : lengths()) {
    std::vector<float> scores = Random(n).vector(n, -30, 30), want = scores;
    float max = 0;
    float sum = scalar(want.data(), n, 0.5f, &max);
    EXPECT_GE(sum, 1.0f);
    EXPECT_EQ(*std::max_element(want.begin(), want.end()), 1.0f);
    for_each_kernel<SoftenFn>(Op::soften, [&](SoftenFn soften) {
      std::vector<float> got = scores;
      float got_max = 0;
      EXPECT_TRUE(same_bytes(soften(got.data(), n, 0.5f, &got_max), sum)) << n;
      EXPECT_TRUE(same_bytes(got_max, max)) << n;
      EXPECT_TRUE(same_bytes(got, want)) << n;
    });
  }
}

TEST(MergeChunk, SameBytesAndInOrder) {
  auto scalar = reference<MergeChunkFn>(Op::merge_chunk);
  for (size_t n : lengths()) {
    Random random(n);
    std::vector<std::vector<float>> chunks = {random.vector(n), random.vector(n), random.vector(n)};
    const float maxima[] = {1.5f, 4.0f, -2.0f}, sums[] = {3.0f, 1.0f, 7.5f};
    auto merge_all = [&](MergeChunkFn merge, std::vector<float>& out, float* merged) {
      for (size_t i = 0; i < 3; ++i) merge(chunks[i].data(), n, maxima[i], sums[i], merged, out.data());
    };
    std::vector<float> want(n);
    float want_merged[2] = {0, 0};
    merge_all(scalar, want, want_merged);
    EXPECT_EQ(want_merged[0], 4.0f);
    for_each_kernel<MergeChunkFn>(Op::merge_chunk, [&](MergeChunkFn merge) {
      std::vector<float> got(n);
      float merged[2] = {0, 0};
      merge_all(merge, got, merged);
      EXPECT_TRUE(same_bytes(got, want)) << n;
      EXPECT_TRUE(same_bytes(merged[1], want_merged[1])) << n;
    });
  }
}

}  // namespace
}  // namespace ridge::test
