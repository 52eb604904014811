// Floats into the quantised types of weight files with the least error that a search finds, for models to keep:
// Σ w_j (x_j − x̂_j)², with a weight w_j for each column, such as the mean square of what the column is multiplied by.
//
// A group's scale (and minimum) is the best of several, each made best for its codes by least squares; the block's
// integer scales are then moved by one where that helps, with new codes under the rounded scales; and the block's f16
// scales are fitted to the outcome. The plain way (the extreme values become the extreme codes) is tried as well, so
// the error is never above its error.
//
// Not for: measuring speed, where any blocks will do (quantize.h).
//
//   std::vector<uint8_t> bytes(row_bytes(Type::Q3_K, 512));
//   fit_row(Type::Q3_K, values, {.weights = mean_squares}, bytes);
#pragma once

#include <cstdint>
#include <span>

#include "tensor/types.h"

namespace ridge {

// Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K.
bool can_fit(Type type);

enum class FitEffort : uint8_t { plain, search };

struct FitOptions {
  std::span<const float> weights = {};  // by column, ≥ 0; empty: all 1
  FitEffort effort = FitEffort::search;
};

// A row of finite values, whole blocks of them, into row_bytes(type, values.size()) bytes. What an f16 scale cannot
// hold is cut to the largest that it can. The same bytes on every machine.
void fit_row(Type type, std::span<const float> values, const FitOptions& options, std::span<uint8_t> out);

}  // namespace ridge
