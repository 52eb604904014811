// The pictures that `ridge image` draws from: --init and --mask, read and brought to the size of the drawing.
//
//   recipe.width = RIDGE_TRY(init_size("in.png")).width;
//   request.init = RIDGE_TRY(init_request(recipe, memory));
#pragma once

#include <optional>

#include "cli/image.h"
#include "cli/image_recipe.h"
#include "engine/image_draw.h"
#include "format/png.h"

namespace ridge::cli {

// What a drawing from this file has without --size: its sides, cut to multiples of 16. Bad input: no picture, or one
// that is smaller than that, or larger than pictures may be.
Result<PngSize> init_size(const std::string& path);

float strength_of(const ImageRecipe& recipe);

// As large as what will be read, to plan with.
InitRequest empty_init(const ImageRecipe& recipe);
// None if the recipe has no picture to begin with. `memory`: the budget, which reading must not exceed either.
Result<std::optional<InitRequest>> init_request(const ImageRecipe& recipe, std::optional<uint64_t> memory);

// Usage error for flags that say how to draw from a picture where none is given.
Result<void> check_init_flags(const ImageFlags& flags);

}  // namespace ridge::cli
