// The choice of a router: which experts a token goes to, and with which weights.
//
//   std::vector<float> scratch(2 * call.experts), experts(call.used), weights(call.used);
//   choose_experts(call, logits, selection_bias, scratch, experts, weights);
//
// The order of steps is that of the models (docs/models/experts.md): probabilities over all experts, plus the bias for
// the choice alone, the best groups, the best experts (ties: the lower number), their unbiased probabilities as
// weights, normalised and scaled where the model says so.
// Obeys the arithmetic contract: sums run in 16 lanes (rule 4 of kernels.h), exp is ours.
#pragma once

#include "model/ops.h"

namespace ridge {

// logits: [experts]; selection_bias: [experts] or nullptr; scratch: [2 · experts].
// factors: [experts] or nullptr: what scores above 0 are multiplied by for the choice; weights do not change by it.
// Logits of RouterGating::softmax_of_chosen may be below 0, so there it is their softmax that is multiplied. chosen,
// weights: [used], best first; chosen are whole numbers, all different even if logits are NaN.
void choose_experts(const RouteCall& call, const float* logits, const float* selection_bias, float* scratch,
                    float* chosen, float* weights, const float* factors = nullptr);

// 1 / (1 + e^−x)
float sigmoid(float x);

}  // namespace ridge
