#include "engine/image_velocity.h"

#include <algorithm>

namespace ridge {
namespace {

uint32_t steps_of(const VelocityOptions& options) { return static_cast<uint32_t>(options.sigmas.size() - 1); }
size_t segments_of(const VelocityOptions& options) { return (options.guidance ? 2 : 1) * options.pictures; }
bool is_hidden(const VelocityOptions& options) {
  return options.forecast && options.forecast->form == ForecastForm::hidden;
}

}  // namespace

// A history longer than the steps that are computed would only be memory: hidden states are 8 MiB each at 512 × 512.
SpectrumOptions ImageVelocity::settings_of(const VelocityOptions& options) {
  SpectrumOptions settings = options.forecast->spectrum;
  const std::vector<bool> computed = forecast_steps(*options.forecast, options.sigmas);
  const auto most = static_cast<uint32_t>(std::count(computed.begin(), computed.end(), true));
  settings.history = std::max<uint32_t>(2, std::min(settings.history, most));
  return settings;
}

uint64_t ImageVelocity::memory_bytes(const VelocityOptions& options, size_t each, size_t hidden) {
  uint64_t bytes = segments_of(options) * uint64_t{each} * sizeof(float);
  if (!options.forecast) return bytes;
  const size_t elements = is_hidden(options) ? hidden : options.pictures * each;
  return bytes + SpectrumForecaster::memory_bytes(settings_of(options), steps_of(options), elements);
}

ImageVelocity::ImageVelocity(ImageModel& model, const VelocityOptions& options)
    : model_(model), options_(options), branches_(segments_of(options) * model.latent_floats()) {
  if (!options.forecast) return;
  const size_t elements = is_hidden(options) ? model.hidden().size() : options.pictures * model.latent_floats();
  forecaster_.emplace(settings_of(options), steps_of(options), elements);
}

bool ImageVelocity::must_compute(const SampleStep& step) {
  const bool compute = !forecaster_ || forecaster_->must_compute(step.step, step.sigma);
  steps_.resize(step.step + size_t{1});
  steps_[step.step] = compute;
  return compute;
}

void ImageVelocity::combine(std::span<float> v) const {
  const std::span<const float> all(branches_);
  if (options_.guidance) return combine_guidance(all.first(v.size()), all.last(v.size()), *options_.guidance, v);
  std::copy(all.begin(), all.end(), v.begin());
}

Result<void> ImageVelocity::at(const SampleStep& step, std::span<const float> x, std::span<float> v) {
  const size_t each = model_.latent_floats();
  const Matrix<const float> latents(x.data(), options_.pictures, each);
  const Matrix<float> velocities(branches_.data(), branches_.size() / each, each);
  const bool compute = must_compute(step);
  if (is_hidden(options_)) {
    if (compute) {
      RIDGE_TRY(model_.evaluate_hidden(step.step, latents));
      forecaster_->record(step.step, model_.hidden());
    } else {
      forecaster_->forecast(step.step, model_.hidden());
    }
    RIDGE_TRY(model_.finish_hidden(step.step, velocities));
    combine(v);
    return {};
  }
  if (compute) {
    RIDGE_TRY(model_.evaluate(step.step, latents, velocities));
    combine(v);
    if (!forecaster_) return {};
    // The branches have been read: their place takes the denoised latent.
    const std::span<float> denoised = std::span(branches_).first(x.size());
    denoised_of(x, v, step.sigma, denoised);
    forecaster_->record(step.step, denoised);
    return {};
  }
  forecaster_->forecast(step.step, v);
  velocity_of(x, v, step.sigma, v);
  return {};
}

}  // namespace ridge
