// A roofline as one self-contained HTML page: charts, sentences, tables, the machine, and how to repeat it.
//
//   RIDGE_TRY(write(path, roofline_html(report, {.command = "ridge roofline model.gguf"})));
#pragma once

#include <string>

#include "analyze/roofline_points.h"

namespace ridge {

struct RooflinePage {
  std::string command;  // that made it
};
std::string roofline_html(const RooflineReport& report, const RooflinePage& page);

// The chart alone: of the first scenario of the report.
std::string first_roofline_svg(const RooflineReport& report);

}  // namespace ridge
