// The importance map as a picture: layers from top to bottom, their blocks from left to right, one colour for the
// chance of a touch and one for sensitivity. One SVG that stands alone, for light and dark grounds.
//
//   RIDGE_TRY(write_text("map.svg", importance_svg(map)));
#pragma once

#include <string>

#include "analyze/importance_map.h"

namespace ridge {

// Two panels: the chance that a token touches a block (0 … 1, mean of the tasks), and sensitivity per byte (share of
// the blocks that are less sensitive). Neurons or experts if the model has blocks that may rest, else heads.
std::string importance_svg(const ImportanceMap& map);

}  // namespace ridge
