// The figures of RooflineBench by its own formulas, the physical ones beside them, and its six insights with verdicts
// (analyze/paper_compat.h): as tables, or as JSON.
//
//   fmt::print("{}", paper_text());
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "analyze/roofline_points.h"

namespace ridge {

std::string paper_text();
// {"machines": […], "points": […], "depth": […], "insights": […], "differences": […]}
nlohmann::ordered_json paper_json();

// The two columns of a report that was made with --paper-compat: a table with its heading, empty without rows; and a
// list of {"model", …, "compat": {…}, "physical": {…}}.
std::string compat_table(const RooflineReport& report);
nlohmann::ordered_json compat_json(const RooflineReport& report);

}  // namespace ridge
