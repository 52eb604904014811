// The chart of a roofline as SVG, for pages and papers: both axes logarithmic, roofs of every machine and level, a
// point for each phase and operator with its sentence on hover. Colours are those of Okabe and Ito, told apart by shape
// as well; light and dark by the reader's preference.
//
//   std::string svg = roofline_svg(report.points, {.title = "llama, SISO"});
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "analyze/roofline_points.h"

namespace ridge {

struct RooflineChart {
  std::string title;
  int width = 860, height = 500;  // of the view box; the drawing scales with its place
};
// A document of its own, also when it stands within a page. Points without a roof are left out.
std::string roofline_svg(std::span<const RooflinePoint> points, const RooflineChart& chart);

// Tokens per second along a sweep or over scenarios: prefill and decode, one mark per phase in the order of the points.
std::string rates_svg(std::span<const RooflinePoint> points, const RooflineChart& chart);

// For text and attributes of SVG and HTML.
std::string markup(std::string_view text);

}  // namespace ridge
