// The velocity of a step, as a sampler asks for it: all branches through the model, guidance, and where a forecast is
// wanted, steps that are predicted from earlier ones instead (docs/samplers.md).
//
//   ImageVelocity velocity(*model, {.pictures = 2, .guidance = 4.0f, .forecast = forecast, .sigmas = sigmas});
//   RIDGE_TRY(velocity.at(step, x, v));              // v = dx/dσ of every picture
//   velocity.steps()[i]                              // whether step i was computed
//
// Both branches of guidance of all pictures are one pass. A picture of several has the velocities that it has alone:
// which steps are predicted depends on their numbers, never on values.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "engine/image_forecast.h"
#include "engine/image_model.h"
#include "engine/image_sampler.h"

namespace ridge {

struct VelocityOptions {
  size_t pictures = 1;
  std::optional<float> guidance = {};  // none: one branch, the job's segments are the pictures
  std::optional<ForecastOptions> forecast = {};
  std::span<const float> sigmas;  // of the run, with the last
};

class ImageVelocity {
 public:
  // The model's job has the segments {0, picture} …, then {1, picture} … with guidance, and these sigmas without the
  // last; for forecasts of hidden states also ImageJob::hidden_states. It must outlive this.
  ImageVelocity(ImageModel& model, const VelocityOptions& options);
  // What the object will hold, with latents of `each` floats and hidden states of `hidden` (of all segments).
  static uint64_t memory_bytes(const VelocityOptions& options, size_t each, size_t hidden);

  // x and v: [pictures, floats of a latent].
  Result<void> at(const SampleStep& step, std::span<const float> x, std::span<float> v);

  // By step, whether it was computed.
  const std::vector<bool>& steps() const { return steps_; }
  // A step was asked for twice: the sampler is none that can be forecast, and all was computed from then on.
  bool fell_back() const { return forecaster_ && forecaster_->fell_back(); }

 private:
  static SpectrumOptions settings_of(const VelocityOptions& options);
  bool must_compute(const SampleStep& step);
  void combine(std::span<float> v) const;

  ImageModel& model_;
  VelocityOptions options_;
  std::vector<float> branches_;  // [segments, floats of a latent]
  std::optional<SpectrumForecaster> forecaster_;
  std::vector<bool> steps_;
};

}  // namespace ridge
