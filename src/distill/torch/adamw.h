// AdamW (Loshchilov and Hutter, 2019) with a clipped gradient and a learning rate of each parameter's own: small, and
// all of its state in the open, so that a checkpoint can hold it bit for bit.
//
//   AdamW optimizer(parameters);                       // handles to the same tensors
//   loss.backward();
//   double norm = optimizer.step({.step = 1, .rate = 1e-3, .decay = 0.1, .clip = 1});      // and zeroes the gradients
#pragma once

#include <torch/torch.h>

#include <vector>

namespace ridge::distill {

struct AdamStep {
  uint64_t step = 1;  // from 1 on
  double rate = 1e-3, decay = 0.1, clip = 1;
};

class AdamW {
 public:
  struct State {
    torch::Tensor value, mean, square;
    torch::Tensor factor;  // of the learning rate, broadcast over the value; undefined: 1
  };
  explicit AdamW(const std::vector<torch::Tensor>& values);

  // Returns the norm of all gradients before clipping; changes nothing but gradients if that is no finite number.
  double step(const AdamStep& how);

  std::vector<State>& states() { return states_; }
  const std::vector<State>& states() const { return states_; }

 private:
  std::vector<State> states_;
};

}  // namespace ridge::distill
