// Rows of a tensor as floats, from its file, forward only: for what looks at every weight once and keeps none.
//
//   TensorRows rows = RIDGE_TRY(TensorRows::open(gguf, tensor));
//   std::vector<float> w(tensor.cols());
//   for (uint64_t r = 0; r < tensor.rows(); ++r) RIDGE_TRY(rows.read(r, w.data()));
#pragma once

#include <cstdint>
#include <vector>

#include "format/file_stream.h"
#include "format/gguf.h"

namespace ridge {

class TensorRows {
 public:
  // Of the file's list, which must live as long as this.
  static Result<TensorRows> open(const Gguf& file, const GgufTensor& tensor);

  // Row r, not before the one after the last; cols() floats. I/O errors.
  Result<void> read(uint64_t r, float* out);

 private:
  TensorRows(FileStream in, const GgufTensor& tensor);

  FileStream in_;
  const GgufTensor* tensor_;
  std::vector<uint8_t> bytes_;
  uint64_t next_ = 0;
};

}  // namespace ridge
