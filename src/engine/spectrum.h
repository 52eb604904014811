// Spectrum: forecasting what a step of a sampler would compute from what earlier steps did (Han, Shi, Li, Ye, Guo and
// Ermon, "Adaptive Spectral Feature Forecasting for Diffusion Sampling Acceleration", CVPR 2026, arXiv 2603.01823).
//
//   forecast = blend · Σ w_k h_k + (1 − blend) · (h_last + g (h_last − h_prev))
//   w = X (XᵀX + λI)⁻¹ T(τ*)    X[k, j] = T_j(τ_k), Chebyshev polynomials of degree 0 … m, τ = 2 · step / steps − 1
//   g = (step − last) / (last − prev)
//
// What h is, is the caller's choice. Two forms are in use: the hidden state after the last block, each branch by itself
// (the authors'; the final layer still runs), and the denoised latent after guidance (a predicted step runs no
// network).
//
//   SpectrumForecaster spectrum(spectrum_sampler_preset(), 28, latent.size());
//   for (uint32_t step = 0; step < 28; ++step) {
//     if (spectrum.must_compute(step, sigma[step])) { …; spectrum.record(step, x0); }
//     else spectrum.forecast(step, x0);
//   }
//
// Weights are float64 throughout and features what they are; sums run in float64. The same bytes everywhere. Not
// thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "program/spectrum_steps.h"

namespace ridge {

struct SpectrumOptions {
  SpectrumRule rule;
  double blend = 0.4;                   // share of the Chebyshev forecast, 0 … 1
  uint32_t degree = 3;                  // m, 0 … 15
  double lambda = 1.0;                  // ≥ 0
  uint32_t history = 6;                 // computed steps that are kept, ≥ 2
  float start_sigma = 2;                // above this sigma all steps are computed
  uint32_t fixed_steps = 0;             // what τ is normalised by; 0: the run's own number of steps
  std::optional<double> taylor_factor;  // g; absent: from the gap between the steps
  bool penalises_constant = true;       // false: λ leaves T₀ alone, so that the weights sum to about one
  double jitter = 1e-4;  // where the matrix is not positive definite: this share of its mean diagonal is added
};

// The denoised latent: 13 of 28 steps computed, 11 of 20, 19 of 50.
SpectrumOptions spectrum_sampler_preset();
// The authors' settings for hidden states: 14 of 50 steps computed.
SpectrumOptions spectrum_hidden_preset();

// A sentence on the first setting that is out of range; empty: all are in range. For the option parser.
std::string_view broken_setting(const SpectrumOptions& options);

// w, one for each of `history` (computed steps, oldest first, at least one). Exposed for tests.
std::vector<double> spectrum_ridge_weights(const SpectrumOptions& options, uint32_t steps,
                                           std::span<const uint32_t> history, uint32_t step);
// All of the forecast as one weighted sum of the history (at least two).
std::vector<double> spectrum_weights(const SpectrumOptions& options, uint32_t steps, std::span<const uint32_t> history,
                                     uint32_t step);

// T is float or double.
template <class T>
class BasicSpectrumForecaster {
 public:
  // `elements`: of one feature. Takes memory_bytes() at once and no more later.
  BasicSpectrumForecaster(const SpectrumOptions& options, uint32_t steps, size_t elements);
  // What the object will hold, for the memory account.
  static uint64_t memory_bytes(const SpectrumOptions& options, uint32_t steps, size_t elements);

  // Forgets everything: a new picture begins. The number of steps must not be larger than at construction.
  void begin_run(uint32_t steps);

  // Steps come in order, each asked for once. A second question about a step means a sampler with several evaluations
  // a step, whose latents do not lie on one trajectory: from then on everything is computed (fell_back()).
  bool must_compute(uint32_t step, float sigma);
  bool fell_back() const { return fell_back_; }
  // After must_compute() said yes, and never otherwise: predictions do not enter the history.
  void record(uint32_t step, std::span<const T> feature);
  // After must_compute() said no.
  void forecast(uint32_t step, std::span<T> out);

  uint32_t computed() const { return computed_; }
  uint32_t predicted() const { return predicted_; }

 private:
  std::span<T> feature(size_t age);  // 0 is the oldest

  SpectrumOptions options_;
  uint32_t steps_;
  size_t elements_, capacity_;
  SpectrumSchedule schedule_;
  std::vector<T> features_;     // [capacity, elements], a ring
  std::vector<uint32_t> kept_;  // the steps in the history, oldest first
  size_t oldest_ = 0;           // where the oldest lies in the ring
  std::optional<uint32_t> asked_;
  uint32_t computed_ = 0, predicted_ = 0;
  bool fell_back_ = false;
};

using SpectrumForecaster = BasicSpectrumForecaster<float>;

}  // namespace ridge
