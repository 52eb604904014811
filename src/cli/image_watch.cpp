#include "cli/image_watch.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/number_list.h"
#include "cli/common.h"
#include "cli/image_made.h"
#include "format/png.h"

namespace ridge::cli {

Result<std::optional<CaptureOptions>> capture_request(const ImageFlags& flags, const ImageRecipe& recipe) {
  if (flags.capture.empty()) {
    if (!flags.capture_steps && !flags.capture_rows) return std::optional<CaptureOptions>();
    return usage_error("--capture-steps and --capture-rows say what is captured: give --capture FOLDER too");
  }
  if (recipe.spectrum) {
    return usage_error("--capture with --spectrum: steps that are predicted have no inputs: leave one of them out");
  }
  CaptureOptions capture{.folder = flags.capture};
  if (flags.capture_steps) {
    for (uint64_t step : RIDGE_TRY(parse_numbers(*flags.capture_steps, "--capture-steps"))) {
      capture.steps.push_back(static_cast<uint32_t>(std::min<uint64_t>(step, UINT32_MAX)));
    }
  }
  if (flags.capture_rows) capture.rows = *flags.capture_rows;
  return std::optional(std::move(capture));
}

Result<std::optional<PreviewRequest>> preview_request(const ImageFlags& flags, bool& shown) {
  if (flags.preview.empty()) {
    if (!flags.preview_every) return std::optional<PreviewRequest>();
    return usage_error("--preview-every says when there is a preview: give --preview FILE too");
  }
  PreviewRequest preview;
  if (flags.preview_every) preview.every = *flags.preview_every;
  if (preview.every == 0) return usage_error("--preview-every 0: give 1 or more steps");
  preview.show = [names = picture_names(flags.preview, flags.batch), &shown](size_t picture,
                                                                             const Image& image) -> Result<void> {
    RIDGE_TRY(write_png(names[picture], image));
    shown = true;
    return {};
  };
  return std::optional(std::move(preview));
}

Result<void> StepBar::after(const SampleStep& step) {
  const Clock::time_point now = Clock::now();
  if (step.step == 0) first_ = now;  // what was before its end is loading
  const std::chrono::duration<double> since = now - first_;
  if (step.step > 0) bar_.annotate(fmt::format("{:.2f} s per step", since.count() / step.step));
  bar_.advance(1);
  return {};
}

}  // namespace ridge::cli
