// `ridge image --reference`: the same pictures without predicted steps, to hold those of a forecast against.
//
//   options.other_bytes += ImageReference::memory_bytes(request);
//   auto reference = RIDGE_TRY(ImageReference::draw(options, request, on_step));       // the exact run
//   …draw_pictures(…, [&](const SampleStep& s, std::span<const float> x) { reference.compare(s, x); …
//   ReferenceReport report = RIDGE_TRY(reference.finish(drawing));
#pragma once

#include "engine/image_draw.h"
#include "report/reference_report.h"

namespace ridge::cli {

class ImageReference {
 public:
  // Draws `request` without its forecast and keeps the latents after every step. `after_step` as of draw_pictures().
  static Result<ImageReference> draw(const ImageOptions& options, const DrawRequest& request, StepFunction after_step);
  // What it holds, and what comparing takes, for the account.
  static uint64_t memory_bytes(const DrawRequest& request);

  // The latents after a step of the run that is judged.
  void compare(const SampleStep& step, std::span<const float> latents);
  Result<ReferenceReport> finish(const Drawing& drawing);

 private:
  explicit ImageReference(const DrawRequest& request) : seeds_(request.sampler.seeds) {}

  std::vector<uint64_t> seeds_;
  std::vector<std::vector<float>> latents_;  // by step
  Drawing exact_;
  ReferenceReport report_;
};

}  // namespace ridge::cli
