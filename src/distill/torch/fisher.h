// The diagonal of a student's Fisher information: by how much its predictions change when one weight does. To second
// order a change δ of the weights raises the divergence from the student as it was by ½ Σ F δ² nats per token.
//
//   std::vector<torch::Tensor> f = fisher_diagonal(student, Batches::in_order(text, 8192, job), seed);
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <span>
#include <vector>

#include "distill/torch/batches.h"
#include "distill/torch/student.h"

namespace ridge::distill {

// Like student.parameters(): means over the windows of (∂/∂w Σ_t log p(y_t | x_<t))² / T, each window by a backward
// pass of its own, the labels y drawn from the student's own predictions by `seed`. With such labels the scores of
// different positions are uncorrelated, so this is the Fisher information per token itself and not the "empirical" one
// of the text's own labels (Kunstner et al. 2019, arXiv:1905.12558).
std::vector<torch::Tensor> fisher_diagonal(Student& student, std::span<const Batch> windows, uint64_t seed);

}  // namespace ridge::distill
