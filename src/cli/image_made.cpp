#include "cli/image_made.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/seconds.h"
#include "base/units.h"
#include "format/png.h"
#include "report/pass_times_report.h"

namespace ridge::cli {
namespace {

std::string written(const std::vector<MadePicture>& made) {
  if (made.size() == 1) return fmt::format("{} is written, seed {}", made[0].path, made[0].seed);
  return fmt::format("{} to {} are written, seeds {} to {}", made.front().path, made.back().path, made.front().seed,
                     made.back().seed);
}

void tell_forecast(const ImageRecipe& recipe, const Drawing& drawing) {
  if (!recipe.spectrum) return;
  const auto computed = std::count(drawing.computed_steps.begin(), drawing.computed_steps.end(), true);
  const size_t steps = drawing.computed_steps.size(), predicted = steps - static_cast<size_t>(computed);
  note(fmt::format("--spectrum: {} of {} are computed, {} predicted", computed, counted(steps, "step"), predicted));
  if (drawing.fell_back) {
    note(fmt::format("--spectrum: {} asks several times a step, so that nothing can be predicted: all was computed",
                     name_of(recipe.sampler)));
  } else if (predicted == 0) {
    note("--spectrum: warm-up and tail leave no step to predict: the picture is the one without it");
  }
}

}  // namespace

std::vector<std::string> picture_names(const std::string& output, uint32_t count) {
  if (count == 1) return {output};
  const std::string ending = std::filesystem::path(output).extension().string();
  const std::string stem = output.substr(0, output.size() - ending.size());
  std::vector<std::string> names;
  for (uint32_t i = 1; i <= count; ++i) names.push_back(fmt::format("{}-{}{}", stem, i, ending));
  return names;
}

std::vector<MadePicture> made_pictures(const ImageFlags& flags, ImageRecipe recipe, const std::string& text) {
  std::vector<MadePicture> all;
  for (std::string& path : picture_names(flags.output, flags.batch)) {
    all.push_back({.path = std::move(path), .text = all.empty() ? text : recipe_text(recipe), .seed = recipe.seed});
    ++recipe.seed;
  }
  return all;
}

Result<void> write_pictures(const std::vector<MadePicture>& made, const Drawing& drawing) {
  for (size_t i = 0; i < made.size(); ++i) {
    const PngText texts[] = {{std::string(kRecipeKey), made[i].text}};
    RIDGE_TRY(write_png(made[i].path, drawing.pictures[i], texts));
  }
  return {};
}

void tell_pictures(const ImageRecipe& recipe, const std::vector<MadePicture>& made, const Drawing& drawing) {
  const ImageTimes& t = drawing.times;
  note(fmt::format("{}: {} of {:.2f} s, encoding {:.2f} s, conditioning {:.2f} s, decoding {:.2f} s", written(made),
                   counted(drawing.computed_steps.size(), "step"),
                   seconds(t.denoise) / static_cast<double>(t.evaluations), seconds(t.encode), seconds(t.condition),
                   seconds(t.decode)));
  tell_forecast(recipe, drawing);
  if (drawing.captured_files > 0) {
    note(fmt::format("--capture: inputs of the feed-forward matrices, {} of {} in all",
                     counted(drawing.captured_files, "file"), format_bytes(drawing.captured_bytes)));
  }
}

nlohmann::ordered_json pictures_json(const std::vector<MadePicture>& made, const Drawing& drawing,
                                     const std::optional<ReferenceReport>& reference, const PassTimes& times) {
  nlohmann::ordered_json pictures = nlohmann::ordered_json::array();
  for (const MadePicture& m : made) pictures.push_back({{"file", m.path}, {"seed", m.seed}});
  const ImageTimes& t = drawing.times;
  nlohmann::ordered_json out = {{"pictures", pictures},
                                {"steps_computed", drawing.computed_steps},
                                {"seconds",
                                 {{"encode", seconds(t.encode)},
                                  {"condition", seconds(t.condition)},
                                  {"picture", seconds(t.picture)},
                                  {"load", seconds(t.load)},
                                  {"steps", seconds(drawing.sampling)},
                                  {"decode", seconds(t.decode)}}}};
  if (reference) out["reference"] = reference_json(*reference);
  if (!times.passes().empty()) out["passes"] = pass_times_json(times.passes());
  return out;
}

}  // namespace ridge::cli
