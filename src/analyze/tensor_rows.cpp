#include "analyze/tensor_rows.h"

#include <utility>

namespace ridge {

Result<TensorRows> TensorRows::open(const Gguf& file, const GgufTensor& tensor) {
  FileStream in = RIDGE_TRY(FileStream::open(file.files()[tensor.file].path));
  RIDGE_TRY(in.skip(tensor.offset));
  return TensorRows(std::move(in), tensor);
}

TensorRows::TensorRows(FileStream in, const GgufTensor& tensor)
    : in_(std::move(in)), tensor_(&tensor), bytes_(row_bytes(tensor.type, tensor.cols())) {}

Result<void> TensorRows::read(uint64_t r, float* out) {
  RIDGE_TRY(in_.skip((r - next_) * bytes_.size()));
  RIDGE_TRY(in_.read(bytes_.data(), bytes_.size()));
  next_ = r + 1;
  type_info(tensor_->type).dequantize(bytes_.data(), out, tensor_->cols());
  return {};
}

}  // namespace ridge
