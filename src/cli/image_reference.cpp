#include "cli/image_reference.h"

#include <chrono>
#include <cmath>

#include "base/seconds.h"

namespace ridge::cli {
namespace {

constexpr uint64_t kCompareBytes = 40;  // a pixel, of compare_images()

double relative_error(std::span<const float> got, std::span<const float> want) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double w = want[i], d = got[i] - w;
    difference += d * d;
    norm += w * w;
  }
  return norm > 0 ? std::sqrt(difference / norm) : 0;
}

}  // namespace

uint64_t ImageReference::memory_bytes(const DrawRequest& r) {
  const uint64_t pixels = uint64_t{r.width} * r.height, pictures = r.sampler.seeds.size();
  const uint64_t latents = pictures * 16 * (pixels / 64) * sizeof(float);
  // One more for the latents of the exact drawing itself.
  return (r.steps + uint64_t{1}) * latents + pictures * 3 * pixels + kCompareBytes * pixels;
}

Result<ImageReference> ImageReference::draw(const ImageOptions& options, const DrawRequest& request,
                                            StepFunction after_step) {
  ImageReference reference(request);
  DrawRequest exact = request;
  exact.forecast.reset();
  exact.preview.reset();
  reference.exact_ =
      RIDGE_TRY(draw_pictures(options, exact, [&](const SampleStep& step, std::span<const float> x) -> Result<void> {
        reference.latents_.emplace_back(x.begin(), x.end());
        return after_step(step, x);
      }));
  return reference;
}

void ImageReference::compare(const SampleStep& step, std::span<const float> latents) {
  ReferenceStep& s = report_.steps.emplace_back();
  s.step = step.step;
  s.sigma = step.sigma;
  const size_t each = latents.size() / seeds_.size();
  const std::span<const float> want = latents_[step.step];
  for (size_t i = 0; i < seeds_.size(); ++i) {
    s.latent_errors.push_back(relative_error(latents.subspan(i * each, each), want.subspan(i * each, each)));
  }
}

Result<ReferenceReport> ImageReference::finish(const Drawing& drawing) {
  for (size_t i = 0; i < report_.steps.size(); ++i) report_.steps[i].computed = drawing.computed_steps[i];
  for (size_t i = 0; i < seeds_.size(); ++i) {
    report_.pictures.push_back(RIDGE_TRY(compare_images(exact_.pictures[i], drawing.pictures[i])));
  }
  report_.seeds = seeds_;
  report_.exact_seconds = seconds(exact_.sampling);
  report_.seconds = seconds(drawing.sampling);
  return std::move(report_);
}

}  // namespace ridge::cli
