// A plan in sentences: one per decision, with its figures.
//
//   for (const std::string& sentence : reasons_of(plan, input)) …
#pragma once

#include <string>
#include <vector>

#include "plan/planner.h"

namespace ridge {

std::vector<std::string> reasons_of(const Plan& plan, const PlanInput& input);

}  // namespace ridge
