// A roofline for people and machines: a table with a sentence for each phase, JSON, CSV. docs/roofline.md explains the
// columns.
//
//   fmt::print("{}", roofline_text(report, RooflineFormat::table));
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "analyze/roofline_points.h"

namespace ridge {

enum class RooflineFormat : uint8_t { table, json, csv };

// Three digits, as far as there are so many; `none` where nothing was measured.
std::string roofline_figure(double value, const char* none = "-");
std::string roofline_text(const RooflineReport& report, RooflineFormat format);
// A point as names and values, one level deep.
nlohmann::ordered_json roofline_row(const RooflinePoint& point);
// {"machine": …, "models": […], "points": [{"model", "scenario", "phase", "operator", "oi", …}]}; rates in units of 1.
nlohmann::ordered_json roofline_json(const RooflineReport& report);

}  // namespace ridge
