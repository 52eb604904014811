// The pictures that one `ridge image` makes: where they go, what their recipes say, and what people and programs are
// told of them.
//
//   std::vector<MadePicture> made = made_pictures(flags, recipe, text);      // out-1.png, out-2.png, … with --batch
//   RIDGE_TRY(write_pictures(made, drawing));
//   tell_pictures(recipe, made, drawing);
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/image.h"
#include "cli/image_recipe.h"
#include "engine/image_draw.h"
#include "program/pass_times.h"
#include "report/reference_report.h"

namespace ridge::cli {

// "out.png" for one, else "out-1.png", "out-2.png", …: the number goes before the ending.
std::vector<std::string> picture_names(const std::string& output, uint32_t count);

// Where a picture goes, and the recipe that makes it alone.
struct MadePicture {
  std::string path, text;
  uint64_t seed = 0;
};
// `text` is that of the first; seeds count up from the recipe's.
std::vector<MadePicture> made_pictures(const ImageFlags& flags, ImageRecipe recipe, const std::string& text);
Result<void> write_pictures(const std::vector<MadePicture>& made, const Drawing& drawing);

// Notes on what was written, how long it took, and what was predicted or captured.
void tell_pictures(const ImageRecipe& recipe, const std::vector<MadePicture>& made, const Drawing& drawing);
nlohmann::ordered_json pictures_json(const std::vector<MadePicture>& made, const Drawing& drawing,
                                     const std::optional<ReferenceReport>& reference, const PassTimes& times);

}  // namespace ridge::cli
