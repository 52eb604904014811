// Rows and columns of the matrices of a feed-forward part in another order of its neurons, as a pack is written. Not
// for: which order (analyze/neuron_order.h).
//
//   const Permuted how = permuted_by(orders, "blk.3.ffn_down.weight");
//   if (how.columns != nullptr) permute_columns(*how.columns, tensor, rows, count);
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "format/gguf.h"
#include "format/neuron_bundles.h"

namespace ridge {

// What of a tensor lies in another order: its rows (the numbers of a vector), its columns, or neither.
struct Permuted {
  const NeuronOrder* rows = nullptr;
  const NeuronOrder* columns = nullptr;
};
Permuted permuted_by(std::span<const NeuronOrder> orders, const std::string& tensor);

// Bytes of what a row order moves: a row, or a number of a vector. 0: a vector in blocks, which cannot be moved.
size_t moved_bytes(const GgufTensor& tensor);

// Rows [first, first + count) of the new order of a tensor, one behind the other, from its file. A row at a time where
// neighbours come from far apart; what was read leaves the page cache. I/O: a failing device.
Result<void> read_permuted_rows(const std::string& path, const GgufTensor& tensor, const NeuronOrder& order,
                                uint64_t first, size_t count, uint8_t* out);

// The columns of `count` rows, one behind the other, in place.
void permute_columns(const NeuronOrder& order, const GgufTensor& tensor, uint8_t* rows, size_t count);

}  // namespace ridge
