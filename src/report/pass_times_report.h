// Load, init, execution and release of a diffusion transformer's parts, as people and programs want them.
//
//   std::string text = pass_times_table(times.passes());
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "program/pass_times.h"

namespace ridge {

// Means by kind of part, then every step's sums. Seconds.
std::string pass_times_table(std::span<const PassCost> passes);
// By step and kind.
nlohmann::ordered_json pass_times_json(std::span<const PassCost> passes);

}  // namespace ridge
