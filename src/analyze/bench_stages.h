// A profile of passes as a table: the time of each kind of operation per token, matrix products by what they multiply.
//
//   std::vector<StageTime> rows = stage_times(profile, engine, tokens);
#pragma once

#include <vector>

#include "analyze/bench.h"
#include "model/stage_profile.h"

namespace ridge {

// Largest first; what is below a thousandth of the whole is added to "other". Shares sum to 1.
std::vector<StageTime> stage_times(const StageProfile& profile, const Engine& engine, uint64_t tokens);

}  // namespace ridge
