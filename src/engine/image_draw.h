// From token ids to pictures: noise, sampler, guidance and VAE around an image model (docs/image.md).
//
// Not for: tokenizing (text/image_prompt.h), files (format/png.h).
//
//   DrawRequest request{.prompt = {.qwen = …, .t5 = …}, .negative = {…}, .width = 512, .height = 512};
//   request.sampler = {.kind = SamplerKind::euler, .seeds = {42}};
//   auto on_step = [](const SampleStep&, std::span<const float> latents) -> Result<void> { return {}; };
//   Drawing d = RIDGE_TRY(draw_pictures(options, request, on_step));
//   write_png("out.png", d.pictures[0]);
//
// The same request gives the same bytes on every instruction set, with any number of threads and any budget; and each
// picture of several is the one that its seed gives alone.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "base/result.h"
#include "engine/image_capture.h"
#include "engine/image_forecast.h"
#include "engine/image_model.h"
#include "engine/image_sampler.h"
#include "format/image.h"

namespace ridge {

inline constexpr uint32_t kMostDrawSteps = 1000, kMostPictureSide = 4096;

// Looks at the pictures on their way (image_preview.h): of the denoised latents of every so many-th step.
struct PreviewRequest {
  uint32_t every = 5;                                                    // ≥ 1
  std::function<Result<void>(size_t picture, const Image& image)> show;  // its error ends the drawing
};

// A drawing that begins with a picture instead of noise alone.
struct InitRequest {
  Image picture;  // RGB, of the drawing's size
  float strength = 1;  // 0 < s ≤ 1: of the steps the last ⌈s · steps⌉ are done, from the picture with the first's noise
  // Of one channel and the same size: 255 where the picture is redrawn, 0 where it stays; empty: redrawn everywhere.
  Image mask = {};
};

struct DrawRequest {
  PromptIds prompt;
  PromptIds negative;                  // what guidance leads away from; not read with cfg = 1
  uint32_t width = 512, height = 512;  // pixels, multiples of 16 up to kMostPictureSide
  uint32_t steps = 28;                 // 1 … kMostDrawSteps
  float cfg = 4;                       // guidance; 1: none, and half the work
  float shift = 3;                     // of the schedule towards noise, 0.01 … 100
  ImageSamplerOptions sampler;         // with a seed for each picture
  // [pictures, 16, height / 8, width / 8] to begin with instead of the seeds' own noise; empty: that.
  std::vector<float> noise = {};
  std::optional<InitRequest> init = {};
  std::optional<ForecastOptions> forecast = {};  // most steps are predicted
  std::optional<PreviewRequest> preview = {};
  std::optional<CaptureOptions> capture = {};  // not with a forecast: what is predicted has no inputs
};

struct Drawing {
  std::vector<float> latents;   // [pictures, 16, height / 8, width / 8]
  std::vector<Image> pictures;  // RGB
  ImageTimes times;
  std::chrono::nanoseconds sampling{0};  // all steps, forecasts and the sampler included
  std::vector<bool> computed_steps;      // the others were predicted
  uint64_t captured_bytes = 0;           // of the files of `capture`
  size_t captured_files = 0;
  bool fell_back = false;  // the sampler is none that can be forecast: all was computed
};

// Usage error for numbers out of range; bad input where the model's values are no numbers; does_not_fit, and everything
// that ImageModel says. `options.vae` is needed, `options.other_bytes` is what the caller itself holds. `after_step` is
// called as each step is done, with the latents as they now are; its error ends the drawing.
Result<Drawing> draw_pictures(const ImageOptions& options, const DrawRequest& request, StepFunction after_step);
// What of it can be refused before anything is read or drawn: the numbers alone, which gives the noise levels of the
// steps that are done and the last, 0; and with them files and memory.
Result<std::vector<float>> check_drawing(const DrawRequest& request);
Result<void> plan_drawing(const ImageOptions& options, const DrawRequest& request);

// The noise levels of so many steps, the last 0; usage error for numbers out of the ranges of DrawRequest, and for so
// strong a shift that two levels are the same number.
Result<std::vector<float>> draw_sigmas(uint32_t steps, float shift);

// Values from −1 to 1, [3, height, width], as 8 bits: rounded to nearest, cut at the ends. Bad input if one is no
// number.
Result<Image> picture_of(std::span<const float> values, uint32_t width, uint32_t height);

}  // namespace ridge
