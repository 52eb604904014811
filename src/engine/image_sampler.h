// The samplers of a rectified flow: from noise to a latent, by evaluations of a velocity v(x, σ) = d x / d σ. The
// denoised latent that it implies is x₀ = x − σ v.
//
// | name     | a step                                                                         | noise |
// |----------|--------------------------------------------------------------------------------|-------|
// | euler    | x + (σ' − σ) v                                                                 | –     |
// | euler_a  | Euler to a lower level than σ', then noise up to σ' (ancestral, for flows)     | eta   |
// | dpmpp_2m | second order in log σ with the x₀ of the step before (Lu and others 2022)      | –     |
// | er_sde   | third order along the reverse SDE (Cui and others 2023, arXiv 2309.06169)   | eta   |
//
// All take one evaluation a step. Pure functions of their arguments: nothing is kept from one picture to the next.
//
//   auto velocity = [&](const SampleStep& s, std::span<const float> x, std::span<float> v) { … };   // with guidance
//   RIDGE_TRY(sample_latents({.kind = SamplerKind::euler}, sigmas, latents, velocity));
//
// Elementwise float32 with coefficients from float64 and our own elementary functions: the same bytes on every ISA.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "base/result.h"

namespace ridge {

enum class SamplerKind : uint8_t { euler, euler_a, dpmpp_2m, er_sde };

std::string_view name_of(SamplerKind kind);
// Usage error that lists the names.
Result<SamplerKind> parse_sampler(std::string_view name);

struct ImageSamplerOptions {
  SamplerKind kind = SamplerKind::euler;
  // Of the noise that euler_a and er_sde add (image_noise.h). As many pictures go together as there are seeds, one
  // after the other in x, and each is the same as if it went alone.
  std::vector<uint64_t> seeds = {0};
  float eta = 1;  // how much noise, 0 … 1; 0: none
};

struct SampleStep {
  uint32_t step = 0, steps = 0;
  float sigma = 0, next_sigma = 0;
};

// Writes the velocity of `x` at `step.sigma` to `velocity`; an error ends the sampling with it.
using VelocityFunction =
    FunctionRef<Result<void>(const SampleStep& step, std::span<const float> x, std::span<float> velocity)>;
// Called after each step with the latent as it now is; an error ends the sampling (Ctrl-C).
using StepFunction = FunctionRef<Result<void>(const SampleStep& step, std::span<const float> x)>;

// Takes `x`, [seeds, elements of a latent], from sigmas.front() to sigmas.back(). `sigmas` fall strictly, from at most
// 1 to at least 0; two or more.
Result<void> sample_latents(const ImageSamplerOptions& options, std::span<const float> sigmas, std::span<float> x,
                            VelocityFunction velocity, StepFunction after_step);
Result<void> sample_latents(const ImageSamplerOptions& options, std::span<const float> sigmas, std::span<float> x,
                            VelocityFunction velocity);

// Floats a sampler holds beside x while it runs, for the memory account.
uint64_t sampler_floats(SamplerKind kind, size_t elements);

// Classifier-free guidance (Ho and Salimans 2022): unconditional + scale · (conditional − unconditional), into `out`,
// which may be either.
void combine_guidance(std::span<const float> conditional, std::span<const float> unconditional, float scale,
                      std::span<float> out);

// x₀ = x − σ v, and back: v = (x − x₀) / σ. `out` may be any of the others. A forecast of x₀ becomes a velocity so.
void denoised_of(std::span<const float> x, std::span<const float> velocity, float sigma, std::span<float> out);
void velocity_of(std::span<const float> x, std::span<const float> denoised, float sigma, std::span<float> out);

}  // namespace ridge
