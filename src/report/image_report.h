// How far a picture is from a reference, as people and programs want it.
//
//   std::string text = image_table(quality);
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "analyze/image_quality.h"

namespace ridge {

std::string image_table(const ImageQuality& quality);
// What is infinite is null: the PSNR of equal pictures, a ratio over a flat reference.
nlohmann::ordered_json image_json(const ImageQuality& quality);

}  // namespace ridge
