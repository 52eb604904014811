// Told what flows through the products of a pass, and free to change it: for statistics of activations, and for leaving
// parts of a model out. Calls come from the thread that runs the pass, in the order of the model.
//
//   class Sums : public ProductProbe { void input(TensorId weight, Rows x) override { … } … };
//   Engine::open({.path = path, .probe = &sums});
#pragma once

#include "model/ops.h"

namespace ridge {

class ProductProbe {
 public:
  virtual ~ProductProbe() = default;
  // x will be multiplied by this matrix: [tokens, cols]. Of an expert: the tokens that chose it. Matrices that share an
  // input come one after the other.
  virtual void input(TensorId weight, Rows x) = 0;
  // What a ReLU is about to be applied to, layer after layer: [tokens, neurons].
  virtual void gates(Rows g) = 0;
};

}  // namespace ridge
