#include "engine/image_draw.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "engine/image_noise.h"
#include "engine/image_schedule.h"
#include "engine/image_velocity.h"

namespace ridge {
namespace {

constexpr uint32_t kSideStep = 16;  // pixels: the VAE's 8 times the patch's 2
constexpr uint32_t kChannels = 16;  // of the latent: the VAE's

uint32_t pictures_of(const DrawRequest& r) { return static_cast<uint32_t>(r.sampler.seeds.size()); }
size_t latent_floats(const DrawRequest& r) {
  return size_t{kChannels} * (r.height / Vae::kScale) * (r.width / Vae::kScale);
}
bool is_guided(const DrawRequest& r) { return r.cfg != 1; }

VelocityOptions velocity_options(const DrawRequest& r, std::span<const float> sigmas) {
  return {.pictures = pictures_of(r),
          .guidance = is_guided(r) ? std::optional(r.cfg) : std::nullopt,
          .forecast = r.forecast,
          .sigmas = sigmas};
}

// What a drawing holds beside the model: latents, the sampler's, the velocities of all branches with a history for
// forecasts, and the finished pictures.
uint64_t bytes_beside_model(const DrawRequest& r, std::span<const float> sigmas, size_t hidden) {
  const uint64_t pictures = pictures_of(r), latents = pictures * latent_floats(r);
  const uint64_t floats = latents + sampler_floats(r.sampler.kind, latents);
  return floats * sizeof(float) + ImageVelocity::memory_bytes(velocity_options(r, sigmas), latent_floats(r), hidden) +
         (pictures + (r.preview ? 1 : 0)) * 3 * r.width * r.height +
         (r.preview ? latent_floats(r) * sizeof(float) : 0) +
         (r.init ? latent_floats(r) / kChannels * sizeof(float) : 0);
}

ImageJob job_of(const DrawRequest& r, std::span<const float> sigmas) {
  ImageJob job{.height = r.height / Vae::kScale,
               .width = r.width / Vae::kScale,
               .prompts = {r.prompt},
               .segments = {},
               .sigmas = {sigmas.begin(), sigmas.end() - 1},
               .hidden_states = r.forecast && r.forecast->form == ForecastForm::hidden};
  if (is_guided(r)) job.prompts.push_back(r.negative);
  for (uint32_t prompt = 0; prompt < job.prompts.size(); ++prompt) {
    for (uint32_t image = 0; image < pictures_of(r); ++image) job.segments.push_back({prompt, image});
  }
  return job;
}

std::vector<float> first_latents(const DrawRequest& r) {
  if (!r.noise.empty()) return r.noise;
  const size_t each = latent_floats(r);
  std::vector<float> latents(pictures_of(r) * each);
  for (size_t i = 0; i < pictures_of(r); ++i) {
    fill_noise(r.sampler.seeds[i], kInitialNoise, std::span(latents).subspan(i * each, each));
  }
  return latents;
}

// x₀ with noise of this level; x holds the noise, of all pictures.
void begin_with(std::span<const float> picture, float sigma, std::span<float> x) {
  for (size_t i = 0; i < x.size(); ++i) x[i] = (1 - sigma) * picture[i % picture.size()] + sigma * x[i];
}

// By pixel of the latent how much of it is redrawn, 0 … 1: the most of its 8 × 8 pixels, so that thin strokes count.
std::vector<float> latent_mask(const Image& mask) {
  const uint32_t width = mask.width / Vae::kScale, height = mask.height / Vae::kScale;
  std::vector<float> out(size_t{width} * height);
  for (uint32_t y = 0; y < mask.height; ++y) {
    for (uint32_t x = 0; x < mask.width; ++x) {
      float& m = out[size_t{y / Vae::kScale} * width + x / Vae::kScale];
      m = std::max(m, static_cast<float>(*mask.at(x, y)) / 255);
    }
  }
  return out;
}

// Outside of the mask the velocity is the one that leads to the picture: what the sampler then does, whichever it is,
// ends there.
void keep_outside(std::span<const float> mask, std::span<const float> picture, float sigma, std::span<const float> x,
                  std::span<float> v) {
  for (size_t i = 0; i < v.size(); ++i) {
    const float m = mask[i % mask.size()];
    v[i] = m * v[i] + (1 - m) * ((x[i] - picture[i % picture.size()]) / sigma);
  }
}

// The pixels outside of the mask as they were, those at its edge mixed.
void paste_outside(const InitRequest& init, Image& drawn) {
  for (size_t i = 0; i < drawn.pixels.size(); ++i) {
    const uint32_t m = init.mask.pixels[i / 3];
    drawn.pixels[i] = static_cast<uint8_t>((m * drawn.pixels[i] + (255 - m) * init.picture.pixels[i] + 127) / 255);
  }
}

// After every so many-th step: what the picture will be as the network has it in mind.
Result<void> show_previews(const ImageModel& model, const DrawRequest& r, const SampleStep& step,
                           std::span<const float> x, std::span<const float> v) {
  if ((step.step + 1) % r.preview->every != 0) return {};
  const size_t each = latent_floats(r);
  std::vector<float> denoised(each);
  for (size_t i = 0; i < pictures_of(r); ++i) {
    denoised_of(x.subspan(i * each, each), v.subspan(i * each, each), step.sigma, denoised);
    RIDGE_TRY(
        r.preview->show(i, preview_of(model.colours(), denoised, {r.height / Vae::kScale, r.width / Vae::kScale})));
  }
  return {};
}

// out.latents from noise to what the VAE decodes.
Result<void> sample(ImageModel& model, const DrawRequest& request, std::span<const float> sigmas, ImageCapture* capture,
                    StepFunction after_step, Drawing& out) {
  ImageVelocity velocity(model, velocity_options(request, sigmas));
  model.watch_ffn(capture);
  std::vector<float> mask;
  if (request.init && !request.init->mask.pixels.empty()) mask = latent_mask(request.init->mask);
  auto ask = [&](const SampleStep& step, std::span<const float> x, std::span<float> v) -> Result<void> {
    if (capture != nullptr) RIDGE_TRY(capture->begin(step.step));
    RIDGE_TRY(velocity.at(step, x, v));
    if (!mask.empty()) keep_outside(mask, model.picture_latent(), step.sigma, x, v);
    if (request.preview) RIDGE_TRY(show_previews(model, request, step, x, v));
    return capture != nullptr ? capture->end() : Result<void>();
  };
  const auto start = std::chrono::steady_clock::now();
  RIDGE_TRY(sample_latents(request.sampler, sigmas, out.latents, ask, after_step));
  out.sampling = std::chrono::steady_clock::now() - start;
  out.computed_steps = velocity.steps();
  out.fell_back = velocity.fell_back();
  if (capture == nullptr) return {};
  out.captured_bytes = capture->file_bytes();
  out.captured_files = capture->files();
  return capture->finish();
}

// Opened and planned: nothing is read but headers.
Result<std::unique_ptr<ImageModel>> open_model(ImageOptions options, const DrawRequest& request,
                                               const std::vector<float>& sigmas) {
  RIDGE_CHECK(!options.vae.empty(), "pictures need a VAE");
  RIDGE_CHECK(!request.forecast || !request.capture, "a step that is predicted has no inputs to capture");
  RIDGE_CHECK(!request.sampler.seeds.empty(), "a seed for each picture");
  RIDGE_CHECK(request.noise.empty() || request.noise.size() == pictures_of(request) * latent_floats(request),
              "noise for each picture");
  const ImageJob job = job_of(request, sigmas);
  options.previews = request.preview.has_value();
  if (request.init) options.picture = &request.init->picture;
  options.beside = [&request, sigmas, job](const AnimaConfig& shape) {
    return bytes_beside_model(request, sigmas, ImageModel::hidden_floats(shape, job)) +
           (request.capture ? ImageCapture::memory_bytes(*request.capture, shape, job) : 0);
  };
  auto model = RIDGE_TRY(ImageModel::open(options, job));
  if (model->shape().channels != kChannels) {
    return bad_input(fmt::format("{}: its latents have {} channels, but the VAE's {}: give a model of this kind",
                                 options.model, model->shape().channels, kChannels));
  }
  return model;
}

}  // namespace

Result<std::vector<float>> check_drawing(const DrawRequest& r) {
  for (uint32_t side : {r.width, r.height}) {
    if (side < kSideStep || side > kMostPictureSide || side % kSideStep != 0) {
      const uint32_t most = std::min(side, kMostPictureSide);
      const uint32_t near = std::max((most + kSideStep / 2) / kSideStep * kSideStep, kSideStep);
      return usage_error(
          fmt::format("--size {}x{}: each side is a multiple of {} from {} to {}; {} is the nearest to {}", r.width,
                      r.height, kSideStep, kSideStep, kMostPictureSide, near, side));
    }
  }
  if (!(std::fabs(r.cfg) <= 1000)) return usage_error(fmt::format("--cfg {}: give a number from -1000 to 1000", r.cfg));
  std::vector<float> sigmas = RIDGE_TRY(draw_sigmas(r.steps, r.shift));
  if (!r.init) return sigmas;
  const double strength = r.init->strength;
  if (!(strength > 0 && strength <= 1)) {
    return usage_error(fmt::format("--strength {}: give a number above 0, up to 1", strength));
  }
  // A product such as 20 · 0.35f lies a little above the 7 that is meant.
  const auto done = static_cast<size_t>(std::max(1.0, std::ceil(r.steps * strength - 1e-4)));
  sigmas.erase(sigmas.begin(), sigmas.end() - static_cast<ptrdiff_t>(done + 1));
  return sigmas;
}

Result<void> plan_drawing(const ImageOptions& options, const DrawRequest& request) {
  (void)RIDGE_TRY(open_model(options, request, RIDGE_TRY(check_drawing(request))));
  return {};
}

Result<Drawing> draw_pictures(const ImageOptions& options, const DrawRequest& request, StepFunction after_step) {
  const std::vector<float> sigmas = RIDGE_TRY(check_drawing(request));
  auto model = RIDGE_TRY(open_model(options, request, sigmas));
  std::unique_ptr<ImageCapture> capture;
  if (request.capture)
    capture = RIDGE_TRY(ImageCapture::create(*request.capture, model->shape(), job_of(request, sigmas)));
  RIDGE_TRY(model->prepare());
  Drawing out{.latents = first_latents(request), .pictures = {}, .times = {}};
  if (request.init) begin_with(model->picture_latent(), sigmas.front(), out.latents);
  RIDGE_TRY(sample(*model, request, sigmas, capture.get(), after_step, out));
  std::vector<float> values(model->picture_floats());
  const size_t each = latent_floats(request);
  for (size_t i = 0; i < pictures_of(request); ++i) {
    if (options.interrupted != nullptr && *options.interrupted) return io_error("stopped by Ctrl-C");
    RIDGE_TRY(model->decode(std::span<const float>(out.latents).subspan(i * each, each), values));
    Image& picture = out.pictures.emplace_back(RIDGE_TRY(picture_of(values, request.width, request.height)));
    if (request.init && !request.init->mask.pixels.empty()) paste_outside(*request.init, picture);
  }
  out.times = model->times();
  return out;
}

Result<std::vector<float>> draw_sigmas(uint32_t steps, float shift) {
  if (steps < 1 || steps > kMostDrawSteps) {
    return usage_error(fmt::format("--steps {}: give 1 to {}", steps, kMostDrawSteps));
  }
  if (!(shift >= 0.01f && shift <= 100)) {
    return usage_error(fmt::format("--shift {}: give a number from 0.01 to 100", shift));
  }
  std::vector<float> sigmas = flow_sigmas(steps, shift);
  sigmas.front() = std::min(sigmas.front(), 1.0f);  // rounding takes it above for some shifts below 1
  if (std::adjacent_find(sigmas.begin(), sigmas.end(), std::less_equal<>()) != sigmas.end()) {
    return usage_error(
        fmt::format("--shift {}: with {} steps two have the same noise: give fewer steps", shift, steps));
  }
  return sigmas;
}

Result<Image> picture_of(std::span<const float> values, uint32_t width, uint32_t height) {
  const size_t plane = size_t{width} * height;
  RIDGE_CHECK(values.size() == 3 * plane, "three planes of the picture's size");
  Image out = make_image(width, height, 3);
  for (size_t c = 0; c < 3; ++c) {
    for (size_t i = 0; i < plane; ++i) {
      const float v = values[c * plane + i];
      if (!std::isfinite(v)) {
        return bad_input(
            "the model gives values that are no numbers: its files or a LoRA are damaged, or the guidance is too "
            "strong");
      }
      out.pixels[3 * i + c] = static_cast<uint8_t>(std::clamp(v, -1.0f, 1.0f) * 127.5f + 128.0f);
    }
  }
  return out;
}

}  // namespace ridge
