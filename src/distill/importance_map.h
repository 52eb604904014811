// Which parts of a student matter more: blocks that a map calls hot learn faster.
//
//   {"format": "ridge-layer-weights", "version": 1,
//    "layers": [1, 1, 2.5, 1],                                                  one weight for each stored layer
//    "neurons": [{"layer": 2, "first": 0, "count": 16, "weight": 4}, …]}        optional: of blocks of neurons
//
// A weight multiplies the learning rate (AdamW's step, not the gradient, whose size AdamW takes out) of all matrices of
// the layer; one of neurons, of their rows of gate and up and columns of down, in place of the layer's. The layer's
// weight also multiplies its part of the loss of hidden states. Weights are scaled to a mean of 1 over the layers.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "distill/job.h"

namespace ridge::distill {

struct ImportanceMap {
  std::vector<double> layers;               // [layers], mean 1
  std::vector<std::vector<float>> neurons;  // [layers][ffn]; empty for a layer without blocks of its own
};
ImportanceMap flat_map(const StudentShape& shape);
// Bad input: another format, a map of a student of other size, a weight that is no number from 0 to 1000.
Result<ImportanceMap> read_importance_map(const std::string& path, const StudentShape& shape);

}  // namespace ridge::distill
