#include "base/matrix.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace ridge {
namespace {

TEST(Matrix, RowsAndSlicesViewTheSameData) {
  std::vector<int> data(24);
  std::iota(data.begin(), data.end(), 0);
  Matrix<int> m(data.data(), 4, 5, 6);  // a stride larger than the width
  EXPECT_EQ(m.row(2)[3], 15);
  EXPECT_EQ(m.row_span(1).size(), 5u);

  Matrix<int> rows = m.slice_rows(1, 2);
  EXPECT_EQ(rows.rows, 2u);
  EXPECT_EQ(rows.row(1)[0], 12);

  Matrix<int> cols = m.slice_cols(2, 3);
  EXPECT_EQ(cols.cols, 3u);
  EXPECT_EQ(cols.row(3)[0], 20);
  cols.row(3)[0] = -1;
  EXPECT_EQ(data[20], -1);

  Matrix<const int> constant = cols;
  EXPECT_EQ(constant.stride, 6u);
  EXPECT_EQ(constant.row(3)[0], -1);
}

}  // namespace
}  // namespace ridge
