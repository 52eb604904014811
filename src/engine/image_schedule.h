// The noise levels of a rectified flow, x_σ = (1 − σ) x₀ + σ · noise, from 1 (noise alone) down to 0 (the picture).
//
//   std::vector<float> sigmas = flow_sigmas(28, 3.0f);          // 29 of them, the last is 0
//   auto rest = sigmas_from_strength(sigmas, 0.6f);             // image to image: the last 60 % of the steps
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ridge {

// σ = shift · t / (1 + (shift − 1) t) for t evenly from 1 to 1 / steps, then 0. In float32, operation by operation as
// the usual scheduler does it, since its bytes are in every picture made with it. steps ≥ 1, shift > 0.
std::vector<float> flow_sigmas(uint32_t steps, float shift);

// Image to image: what is left when only the last ⌊strength · steps⌋ steps, at least one, are taken. Strength in (0,
// 1]. The first of them is the noise level that the given picture is brought to.
std::span<const float> sigmas_from_strength(std::span<const float> sigmas, float strength);

}  // namespace ridge
