// NumPy arrays (.npy): float32, two dimensions, row after row. What `numpy.load` reads and writes by default.
//
// Not for other element types, orders or dimensions, and not for .npz.
//
//   NpyWriter out = RIDGE_TRY(NpyWriter::create("logits.npy", tokens, vocabulary));
//   for (…) RIDGE_TRY(out.append(row));        // [cols]
//   RIDGE_TRY(out.finish());                   // now the file is there
//   NpyArray back = RIDGE_TRY(read_npy("logits.npy"));
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/matrix.h"
#include "base/result.h"
#include "format/output_file.h"

namespace ridge {

class NpyWriter {
 public:
  // Claims the room for all rows at once. All errors, a full disk included, are io errors.
  static Result<NpyWriter> create(const std::string& path, uint64_t rows, uint64_t cols);

  Result<void> append(std::span<const float> row);  // [cols]; at most `rows` times
  // Puts the file in its place. All rows must have come; without finish() nothing remains.
  Result<void> finish();

 private:
  NpyWriter(OutputFile file, uint64_t rows, uint64_t cols) : file_(std::move(file)), missing_(rows), cols_(cols) {}

  OutputFile file_;
  uint64_t missing_;  // rows that did not come yet
  uint64_t cols_;
};

struct NpyArray {
  size_t rows = 0, cols = 0;
  std::vector<float> values;  // [rows, cols]

  Matrix<const float> view() const { return {values.data(), rows, cols}; }
};

// Reads the whole file into memory; bad_input if it is not a [rows, cols] array of little-endian float32 in C order.
Result<NpyArray> read_npy(const std::string& path);

}  // namespace ridge
