// The beginning of a GGUF file (version 3): metadata and the list of tensors, whose bytes the caller writes after it.
//
//   std::vector<GgufTensor> tensors = …;                       // name, shape, dims, type
//   std::string header = gguf_header(metadata, tensors);       // fills in bytes and offset
//   write(header); for (const GgufTensor& t : tensors) write at t.offset, t.bytes of them
//   the file has gguf_file_bytes(tensors) bytes
//
// Numbers are written with 32 bits where that loses nothing (integers from 0 to 2^32 − 1, floats that are no longer),
// as llama.cpp demands of most keys, else with 64.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "format/gguf.h"

namespace ridge {

// Each tensor begins at a multiple of this, the format's usual one; the header ends at one.
inline constexpr uint64_t kGgufAlignment = 32;

struct GgufHeaderOptions {
  std::vector<std::string> narrow = {};  // whole numbers of these keys as 32 bits, for readers that insist
};

// Fills in `bytes` and the absolute `offset` of each tensor, one after the other. A key general.alignment of the
// metadata is left out. Columns are whole blocks.
std::string gguf_header(const Metadata& metadata, std::vector<GgufTensor>& tensors,
                        const GgufHeaderOptions& options = {});
// Of the whole file: the last tensor is filled up like the others. llama.cpp reads the data of an importance matrix in
// one piece so long, and refuses a file that ends earlier.
uint64_t gguf_file_bytes(std::span<const GgufTensor> tensors);

}  // namespace ridge
