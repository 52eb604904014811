// The terms of the loss, each a scalar tensor with a gradient. Means over the positions that count: `weight` is
// [positions], 1 where a position is scored and 0 where not.
//
//   auto loss = (1 − kd) · cross_entropy(logits, targets, weight) + kd · divergence(losses, logits, teacher, weight);
#pragma once

#include <torch/torch.h>

#include <vector>

#include "distill/job.h"

namespace ridge::distill {

// logits [positions, vocabulary], targets int64 [positions]. Nats.
torch::Tensor cross_entropy(const torch::Tensor& logits, const torch::Tensor& targets, const torch::Tensor& weight);

// T² times the divergence of softmax(teacher / T) and softmax(logits / T), as job.h writes them. No gradient to the
// teacher.
torch::Tensor divergence(const Losses& losses, const torch::Tensor& logits, const torch::Tensor& teacher,
                         const torch::Tensor& weight);

// Mean squared distance of the projected states from the teacher's, as a share of the teacher's mean square:
// hidden [positions, dim], projection [teacher dim, dim], teacher [positions, teacher dim].
torch::Tensor hidden_match(const torch::Tensor& hidden, const torch::Tensor& projection, const torch::Tensor& teacher,
                           const torch::Tensor& weight);

// Mean over runs, positions and neurons of the gates after ReLU.
torch::Tensor gate_mean(const std::vector<torch::Tensor>& gates);

}  // namespace ridge::distill
