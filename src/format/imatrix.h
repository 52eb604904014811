// Importance matrices of llama.cpp: for every matrix of a model the sums of squares of what it was multiplied by, by
// column, and of how many tokens. A GGUF file with tensors "NAME.in_sum2" [columns, matrices] and "NAME.counts"
// [1, matrices]; the matrices of a stack (experts) each have their own.
//
//   Imatrix m = RIDGE_TRY(read_imatrix("model.imatrix.gguf"));
//   const ImatrixEntry* e = m.find("blk.0.ffn_down.weight");
//   double mean_square = e->in_sum2[column] / e->counts[0];
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace ridge {

struct ImatrixEntry {
  std::string name;             // of the tensor
  uint32_t columns = 0;         // of each matrix
  std::vector<double> in_sum2;  // matrix by matrix, columns of each
  std::vector<double> counts;   // tokens, by matrix
};

struct Imatrix {
  std::vector<std::string> datasets;
  uint32_t chunks = 0, chunk_tokens = 0;
  std::vector<ImatrixEntry> entries;  // by name, ascending
  const ImatrixEntry* find(const std::string& name) const;
};

// Bad input: no importance matrix, one tensor of a pair without the other, shapes that do not go together, numbers that
// are negative or not finite.
Result<Imatrix> read_imatrix(const std::string& path);
Result<void> write_imatrix(const Imatrix& imatrix, const std::string& path);

}  // namespace ridge
