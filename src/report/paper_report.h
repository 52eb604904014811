// The figures of RooflineBench by its own formulas, the physical ones beside them, and its six insights with verdicts
// (analyze/paper_compat.h): as tables, or as JSON.
//
//   fmt::print("{}", paper_text());
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace ridge {

std::string paper_text();
// {"machines": […], "points": […], "depth": […], "insights": […], "differences": […]}
nlohmann::ordered_json paper_json();

}  // namespace ridge
