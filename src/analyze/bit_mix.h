// Which type each matrix of a model gets, so that the predicted loss is least under a size, or the size under a loss.
//
// Every matrix has choices of bytes and loss, and losses add up. Of its choices those on the lower convex hull count;
// the steps along all hulls are taken in the order of loss saved per byte, which is the optimum of the Lagrangian loss
// + λ · bytes for the λ of the last step (Everett 1963). What the limit leaves over is given to the next steps that
// still fit; the bound says what fractions of steps would reach.
//
//   std::vector<BitMatrix> matrices = …;
//   std::optional<BitMix> mix = mix_under_bytes(matrices, 300 * kMiB);    // none: even the smallest is larger
//   matrices[i].choices[mix->chosen[i]].type
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tensor/types.h"

namespace ridge {

struct BitChoice {
  Type type = Type::F32;
  uint64_t bytes = 0;
  double error = 0;  // Σ_j E[x_j²] (w − ŵ)² / Σ_j E[x_j²] w²: of the product's energy, lost
};

struct BitMatrix {
  std::string name;
  uint64_t elements = 0;
  double scale = 1;  // loss of a unit of error
  std::vector<BitChoice> choices;
  double loss(size_t choice) const { return scale * choices[choice].error; }
};

struct BitMix {
  std::vector<size_t> chosen;  // of each matrix
  uint64_t bytes = 0;          // of the matrices
  double loss = 0;
  double bound = 0;  // no mix under the limit has a smaller loss (mix_under_bytes), or fewer bytes (mix_under_loss)
};

std::optional<BitMix> mix_under_bytes(std::span<const BitMatrix> matrices, uint64_t most_bytes);
std::optional<BitMix> mix_under_loss(std::span<const BitMatrix> matrices, double most_loss);
// Bytes of the smallest mix.
uint64_t least_bytes(std::span<const BitMatrix> matrices);

}  // namespace ridge
