// What looks at pictures while they are drawn: the bar, previews (--preview) and the inputs of feed-forward matrices
// (--capture).
//
//   request.capture = RIDGE_TRY(capture_request(flags, recipe));
//   bool shown = false;
//   request.preview = RIDGE_TRY(preview_request(flags, shown));
//   StepBar bar(steps);
//   …draw_pictures(options, request, [&](const SampleStep& step, std::span<const float>) { return bar.after(step); });
#pragma once

#include <chrono>
#include <optional>

#include "base/progress.h"
#include "cli/image.h"
#include "cli/image_recipe.h"
#include "engine/image_draw.h"

namespace ridge::cli {

// Nothing where the flag is not given. Usage errors for flags that contradict each other or name files in use.
Result<std::optional<CaptureOptions>> capture_request(const ImageFlags& flags, const ImageRecipe& recipe);
// Previews go to files of their own, one for each picture; a newer one replaces the last. `shown` becomes true with the
// first, and outlives the drawing.
Result<std::optional<PreviewRequest>> preview_request(const ImageFlags& flags, bool& shown);

// The bar of so many steps of one or more runs, with seconds per step.
class StepBar {
 public:
  explicit StepBar(uint64_t steps) : bar_("drawing", steps, ProgressUnit::items) {}
  Result<void> after(const SampleStep& step);

 private:
  using Clock = std::chrono::steady_clock;
  Progress bar_;
  Clock::time_point first_;
};

}  // namespace ridge::cli
