// Gaussian noise for pictures: the same bytes on every machine, instruction set, compiler and number of threads.
//
// The source, in full, so that others can make the same noise:
//
//   s = seed;  a = splitmix64(s);  s = a ^ stream · 0xD1B54A32D192ED03;  b = splitmix64(s)      (base/splitmix.h)
//   from the state b, splitmix64 gives u₁ = (bits >> 11) + 1 and u₂ = bits >> 11, both times 2⁻⁵³
//   r = √(−2 log u₁);  the next two numbers are r cos(2π u₂) and r sin(2π u₂), each rounded to float32
//
// (Box and Muller 1958, in float64, with log, sin and cos of kernels/math.h.) Stream 0 is the noise a picture begins
// with; stream k + 1 is what an ancestral sampler adds in step k. So a step's noise does not depend on what came
// before.
//
//   fill_noise(42, kInitialNoise, latents);
#pragma once

#include <cstdint>
#include <span>

namespace ridge {

inline constexpr uint64_t kInitialNoise = 0;
constexpr uint64_t noise_of_step(uint32_t step) { return uint64_t{step} + 1; }

void fill_noise(uint64_t seed, uint64_t stream, std::span<float> out);

}  // namespace ridge
