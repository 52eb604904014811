// A view of a row-major matrix that somebody else owns.
//
//   Matrix<const float> x;   // [tokens, width]
//   x.row(3)[7]
#pragma once

#include <cstddef>
#include <span>

namespace ridge {

template <class T>
struct Matrix {
  T* data = nullptr;
  size_t rows = 0;
  size_t cols = 0;
  size_t stride = 0;  // elements from one row to the next, ≥ cols

  Matrix() = default;
  Matrix(T* data_in, size_t rows_in, size_t cols_in) : Matrix(data_in, rows_in, cols_in, cols_in) {}
  Matrix(T* data_in, size_t rows_in, size_t cols_in, size_t stride_in)
      : data(data_in), rows(rows_in), cols(cols_in), stride(stride_in) {}

  T* row(size_t r) const { return data + r * stride; }
  std::span<T> row_span(size_t r) const { return {row(r), cols}; }
  // Rows [begin, begin + count).
  Matrix slice_rows(size_t begin, size_t count) const { return {data + begin * stride, count, cols, stride}; }
  // Columns [begin, begin + count).
  Matrix slice_cols(size_t begin, size_t count) const { return {data + begin, rows, count, stride}; }
  operator Matrix<const T>() const { return {data, rows, cols, stride}; }
};

}  // namespace ridge
