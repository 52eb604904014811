// Metadata of a GGUF file as bytes, to write the same model with other tensors: what is not changed stays as it was
// written, byte for byte (Metadata of gguf.h knows neither the order nor the width of numbers).
//
//   GgufRaw raw = RIDGE_TRY(GgufRaw::read(gguf));            // Gguf::open() has checked the file
//   raw.set("general.file_type", 15);
//   raw.lay_out(tensors);                                    // fills in bytes and offset, one after the other
//   write(raw.header(tensors)); each tensor at its offset; raw.file_bytes(tensors) in all
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "format/gguf.h"

namespace ridge {

class GgufRaw {
 public:
  // Bad input: a split model, or a file that changed since it was opened.
  static Result<GgufRaw> read(const Gguf& source);

  // A whole number of 32 bits, in the entry's place or at the end.
  void set(const std::string& key, uint32_t value);

  // In this order, each at a multiple of the file's alignment.
  void lay_out(std::vector<GgufTensor>& tensors) const;
  // Its size depends on names and dimensions alone: types and offsets may change later. Offsets are multiples of the
  // alignment, and not below header_bytes().
  std::string header(std::span<const GgufTensor> tensors) const;
  uint64_t header_bytes(std::span<const GgufTensor> tensors) const;
  uint64_t file_bytes(std::span<const GgufTensor> tensors) const;  // up to the end of the last, padded
  uint64_t aligned(uint64_t bytes) const { return (bytes + alignment_ - 1) / alignment_ * alignment_; }

 private:
  std::vector<std::pair<std::string, std::string>> entries_;  // key; type and value
  uint64_t alignment_ = 32;
};

}  // namespace ridge
