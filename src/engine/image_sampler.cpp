#include "engine/image_sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "engine/image_noise.h"
#include "format/quote.h"
#include "kernels/math.h"

namespace ridge {
namespace {

struct Row {
  SamplerKind kind;
  std::string_view name;
  size_t buffers;  // of the size of x, the velocity included
};
constexpr Row kRows[] = {
    {SamplerKind::euler, "euler", 1},
    {SamplerKind::euler_a, "euler_a", 2},
    {SamplerKind::dpmpp_2m, "dpmpp_2m", 3},
    {SamplerKind::er_sde, "er_sde", 4},
};

// What the steps of one picture share. `denoised` is x₀ of this step; what lies in the others is the sampler's.
struct Run {
  const ImageSamplerOptions& options;
  std::span<const float> sigmas;
  std::span<float> x;
  std::span<float> velocity, scratch_a, scratch_b, scratch_c;
};

double square(double v) { return v * v; }

// x ← by_x · x + by_denoised · x₀
void blend(std::span<float> x, double by_x, std::span<const float> denoised, double by_denoised) {
  const auto a = static_cast<float>(by_x), b = static_cast<float>(by_denoised);
  for (size_t i = 0; i < x.size(); ++i) x[i] = a * x[i] + b * denoised[i];
}

void add_scaled(std::span<float> x, double scale, std::span<const float> other) {
  const auto s = static_cast<float>(scale);
  for (size_t i = 0; i < x.size(); ++i) x[i] += s * other[i];
}

// The noise of step i, for each picture from its own seed.
void fill_step_noise(const ImageSamplerOptions& options, size_t i, std::span<float> out) {
  const size_t each = out.size() / options.seeds.size();
  for (size_t k = 0; k < options.seeds.size(); ++k) {
    fill_noise(options.seeds[k], noise_of_step(static_cast<uint32_t>(i)), out.subspan(k * each, each));
  }
}

void step_euler(Run& run, size_t i) {
  const float step = run.sigmas[i + 1] - run.sigmas[i];
  for (size_t k = 0; k < run.x.size(); ++k) run.x[k] += step * run.velocity[k];
}

// Down to a level below σ', and noise up to it. A flow's scale 1 − σ changes on the way, so x is scaled as well.
void step_euler_ancestral(Run& run, size_t i) {
  const double from = run.sigmas[i], to = run.sigmas[i + 1];
  denoised_of(run.x, run.velocity, run.sigmas[i], run.velocity);
  const double down = to * (1 + (to / from - 1) * run.options.eta);
  blend(run.x, down / from, run.velocity, 1 - down / from);
  if (run.options.eta == 0 || to == 0) return;
  const double scale = (1 - to) / (1 - down);
  const double noise = std::sqrt(std::max(0.0, square(to) - square(down * scale)));
  fill_step_noise(run.options, i, run.scratch_a);
  blend(run.x, scale, run.scratch_a, noise);
}

// In t = −log σ, with the slope of x₀ over the step before. The last step, to σ = 0, takes x₀ as it is.
void step_dpmpp_2m(Run& run, size_t i) {
  const std::span<float> denoised = run.scratch_a, before = run.scratch_b;
  std::copy(denoised.begin(), denoised.end(), before.begin());
  denoised_of(run.x, run.velocity, run.sigmas[i], denoised);
  const double from = run.sigmas[i], to = run.sigmas[i + 1];
  if (to == 0) {
    std::copy(denoised.begin(), denoised.end(), run.x.begin());
    return;
  }
  const double share = 1 - to / from;  // −expm1(−h), exact: e^−h is σ' / σ
  if (i == 0) return blend(run.x, to / from, denoised, share);
  const double h = d_log(from) - d_log(to), h_before = d_log(run.sigmas[i - 1]) - d_log(from);
  const double slope = h / (2 * h_before);
  blend(run.x, to / from, denoised, share * (1 + slope));
  add_scaled(run.x, -share * slope, before);
}

// ---- er_sde ---------------------------------------------------------------------------------------------------------

// λ = σ / (1 − σ); at σ = 1 there is none, so the level just below stands in.
double er_lambda(float sigma) {
  const double s = std::min<double>(sigma, 0.9999);
  return s / (1 - s);
}

double er_noise_scale(double lambda) { return lambda * (d_exp(d_pow(lambda, 0.3)) + 10); }

// ∫ 1/s and ∫ (λ − λ_from)/s from λ_to to λ_from, by 200 left-hand rectangles as in the paper's program.
struct ErIntegrals {
  double plain = 0, weighted = 0;
};
ErIntegrals er_integrals(double from, double to) {
  constexpr int kPoints = 200;
  const double width = (from - to) / kPoints;
  ErIntegrals sum;
  for (int k = 0; k < kPoints; ++k) {
    const double lambda = to + k * width, density = 1 / er_noise_scale(lambda);
    sum.plain += density;
    sum.weighted += (lambda - from) * density;
  }
  return {sum.plain * width, sum.weighted * width};
}

void step_er_sde(Run& run, size_t i) {
  const std::span<float> denoised = run.velocity, before = run.scratch_a, slope_before = run.scratch_b;
  denoised_of(run.x, run.velocity, run.sigmas[i], denoised);
  if (run.sigmas[i + 1] == 0) {
    std::copy(denoised.begin(), denoised.end(), run.x.begin());
    return;
  }
  const double from = er_lambda(run.sigmas[i]), to = er_lambda(run.sigmas[i + 1]);
  const double alpha_from = 1 / (1 + from), alpha_to = 1 / (1 + to);
  const double scale_to = er_noise_scale(to), r = scale_to / er_noise_scale(from);
  blend(run.x, alpha_to / alpha_from * r, denoised, alpha_to * (1 - r));
  if (i > 0) {
    const double step = to - from;
    const ErIntegrals integrals = er_integrals(from, to);
    const auto gap = static_cast<float>(from - er_lambda(run.sigmas[i - 1]));
    const std::span<float> slope = run.scratch_c;
    for (size_t k = 0; k < slope.size(); ++k) slope[k] = (denoised[k] - before[k]) / gap;
    add_scaled(run.x, alpha_to * (step + integrals.plain * scale_to), slope);
    if (i > 1) {
      const double half_gap = (from - er_lambda(run.sigmas[i - 2])) / 2;
      const double factor = alpha_to * (square(step) / 2 + integrals.weighted * scale_to) / half_gap;
      add_scaled(run.x, factor, slope);
      add_scaled(run.x, -factor, slope_before);
    }
    std::copy(slope.begin(), slope.end(), slope_before.begin());
  }
  std::copy(denoised.begin(), denoised.end(), before.begin());
  if (run.options.eta == 0) return;
  const double noise = std::sqrt(std::max(0.0, square(to) - square(from * r)));
  fill_step_noise(run.options, i, run.scratch_c);
  add_scaled(run.x, alpha_to * noise * run.options.eta, run.scratch_c);
}

void take_step(Run& run, size_t i) {
  switch (run.options.kind) {
    case SamplerKind::euler:
      return step_euler(run, i);
    case SamplerKind::euler_a:
      return step_euler_ancestral(run, i);
    case SamplerKind::dpmpp_2m:
      return step_dpmpp_2m(run, i);
    case SamplerKind::er_sde:
      return step_er_sde(run, i);
  }
}

const Row& row_of(SamplerKind kind) {
  return *std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& row) { return row.kind == kind; });
}

}  // namespace

std::string_view name_of(SamplerKind kind) { return row_of(kind).name; }

Result<SamplerKind> parse_sampler(std::string_view name) {
  std::string names;
  for (const Row& row : kRows) {
    if (row.name == name) return row.kind;
    names += (names.empty() ? "" : ", ") + std::string(row.name);
  }
  return usage_error(fmt::format("{} is no sampler: give one of {}", in_quotes(name), names));
}

uint64_t sampler_floats(SamplerKind kind, size_t elements) { return row_of(kind).buffers * uint64_t{elements}; }

Result<void> sample_latents(const ImageSamplerOptions& options, std::span<const float> sigmas, std::span<float> x,
                            VelocityFunction velocity, StepFunction after_step) {
  RIDGE_CHECK(sigmas.size() >= 2 && sigmas.front() <= 1 && sigmas.back() >= 0, "sigmas from at most 1 to at least 0");
  RIDGE_CHECK(std::adjacent_find(sigmas.begin(), sigmas.end(), std::less_equal<>()) == sigmas.end(), "sigmas fall");
  RIDGE_CHECK(options.eta >= 0 && options.eta <= 1, "eta lies between 0 and 1");
  RIDGE_CHECK(!options.seeds.empty() && x.size() % options.seeds.size() == 0, "a seed for each picture in x");
  const size_t n = x.size(), buffers = row_of(options.kind).buffers;
  std::vector<float> memory(sampler_floats(options.kind, n));
  auto buffer = [&](size_t index) {
    return index < buffers ? std::span(memory).subspan(index * n, n) : std::span<float>();
  };
  Run run{options, sigmas, x, buffer(0), buffer(1), buffer(2), buffer(3)};
  const auto steps = static_cast<uint32_t>(sigmas.size() - 1);
  for (uint32_t i = 0; i < steps; ++i) {
    const SampleStep step{i, steps, sigmas[i], sigmas[i + 1]};
    RIDGE_TRY(velocity(step, x, run.velocity));
    take_step(run, i);
    RIDGE_TRY(after_step(step, x));
  }
  return {};
}

Result<void> sample_latents(const ImageSamplerOptions& options, std::span<const float> sigmas, std::span<float> x,
                            VelocityFunction velocity) {
  return sample_latents(options, sigmas, x, velocity,
                        [](const SampleStep&, std::span<const float>) -> Result<void> { return {}; });
}

void combine_guidance(std::span<const float> conditional, std::span<const float> unconditional, float scale,
                      std::span<float> out) {
  RIDGE_CHECK(conditional.size() == out.size() && unconditional.size() == out.size(), "branches of one size");
  for (size_t i = 0; i < out.size(); ++i) out[i] = unconditional[i] + scale * (conditional[i] - unconditional[i]);
}

void denoised_of(std::span<const float> x, std::span<const float> velocity, float sigma, std::span<float> out) {
  for (size_t i = 0; i < out.size(); ++i) out[i] = x[i] - sigma * velocity[i];
}

void velocity_of(std::span<const float> x, std::span<const float> denoised, float sigma, std::span<float> out) {
  RIDGE_CHECK(sigma > 0, "at sigma 0 a latent says nothing of its velocity");
  for (size_t i = 0; i < out.size(); ++i) out[i] = (x[i] - denoised[i]) / sigma;
}

}  // namespace ridge
