// Panels keep every value: packed and dequantised, they equal the file layout bit for bit.
#include "tensor/panel.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tensor/half.h"
#include "tensor/panel_format.h"
#include "tests/tensor/random_blocks.h"

namespace ridge {
namespace {

bool same_bits(float a, float b) { return std::memcmp(&a, &b, 4) == 0; }

struct Packed {
  std::vector<uint8_t> rows;
  std::vector<uint8_t> panel;
};

Packed pack(Type type, size_t row_count, size_t cols, size_t gap, uint64_t seed) {
  const size_t stride = row_bytes(type, cols) + gap;
  Packed packed{random_rows(type, row_count, cols, stride, seed), std::vector<uint8_t>(panel_bytes(type, cols), 0xee)};
  pack_panel({type, packed.rows.data(), stride, row_count, cols, packed.panel.data()});
  return packed;
}

class PanelOfType : public testing::TestWithParam<Type> {};

TEST_P(PanelOfType, DequantizedEqualsFile) {
  const Type type = GetParam();
  const TypeInfo& info = type_info(type);
  for (const size_t cols : test_cols(type)) {
    for (size_t row_count = 1; row_count <= 16; ++row_count) {
      const size_t gap = row_count % 3;
      const Packed packed = pack(type, row_count, cols, gap, 100 * cols + row_count);
      std::vector<float> all(16 * cols), row(cols), expected(cols);
      dequantize_panel(type, packed.panel.data(), cols, 0, cols, all.data());
      for (size_t r = 0; r < 16; ++r) {
        dequantize_panel_row(type, packed.panel.data(), cols, r, row.data());
        std::fill(expected.begin(), expected.end(), 0.0f);
        if (r < row_count) {
          info.dequantize(packed.rows.data() + r * (row_bytes(type, cols) + gap), expected.data(), cols);
        }
        for (size_t c = 0; c < cols; ++c) {
          ASSERT_TRUE(same_bits(row[c], all[16 * c + r]));
          if (r < row_count) {
            ASSERT_TRUE(same_bits(row[c], expected[c])) << info.name << " row " << r << " column " << c;
          } else {
            ASSERT_EQ(row[c], 0.0f) << info.name << " missing row " << r;
          }
        }
      }
    }
  }
}

TEST_P(PanelOfType, AnyRangeOfColumns) {
  const Type type = GetParam();
  const size_t cols = test_cols(type).back();
  const Packed packed = pack(type, 16, cols, 0, 5);
  std::vector<float> all(16 * cols), part(16 * cols);
  dequantize_panel(type, packed.panel.data(), cols, 0, cols, all.data());
  for (size_t begin = 0; begin < cols; begin += 32) {
    for (size_t count = 32; begin + count <= cols; count += 32) {
      dequantize_panel(type, packed.panel.data(), cols, begin, count, part.data());
      ASSERT_EQ(std::memcmp(part.data(), all.data() + 16 * begin, 64 * count), 0) << begin << " + " << count;
    }
  }
}

TEST_P(PanelOfType, GatherGivesTheFilesBytesBack) {
  const Type type = GetParam();
  const size_t cols = test_cols(type).back(), bytes = type_info(type).bytes;
  const Packed packed = pack(type, 16, cols, 0, 6);
  uint8_t block[kMaxBlockBytes];
  for (size_t r = 0; r < 16; ++r) {
    for (size_t b = 0; b < cols / type_info(type).block; ++b) {
      gather_block(panel_format(type), packed.panel.data(), b, r, block);
      ASSERT_EQ(std::memcmp(block, packed.rows.data() + r * row_bytes(type, cols) + b * bytes, bytes), 0);
    }
  }
}

TEST_P(PanelOfType, SizeIsAMultipleOf64AndCloseToTheFiles) {
  const Type type = GetParam();
  for (const size_t cols : test_cols(type)) EXPECT_EQ(panel_bytes(type, cols) % 64, 0u);
  const double file = static_cast<double>(16 * row_bytes(type, 4096));
  EXPECT_LE(static_cast<double>(panel_bytes(type, 4096)), 1.03 * file);
  EXPECT_EQ(panels_bytes(type, 33, 4096), 3 * panel_bytes(type, 4096));
  EXPECT_EQ(panels_bytes(type, 32, 4096), 2 * panel_bytes(type, 4096));
}

INSTANTIATE_TEST_SUITE_P(, PanelOfType, testing::ValuesIn(every_type()),
                         [](const auto& test) { return std::string(type_info(test.param).name); });

}  // namespace
}  // namespace ridge
