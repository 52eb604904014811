// Pieces of SVG and HTML for reports that stand alone in one file: boxes as one path, axes. Charts are
// stretched to the width they get (preserveAspectRatio="none"); their text is HTML beside them and keeps its size.
//
//   BoxPath boxes;
//   boxes.add({.x = 10, .y = 0, .width = 25, .height = 8});
//   html += stretched_svg({.width = 1000, .height = 80, .body = boxes.path("computed")});
//   html += chart({.top = "1.2 GB/s", .middle = "0.6", .bottom = "0", .from = "0 s", .to = "3.1 s", .body = svg});
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ridge {

// "12.3 ms", "850 µs", "3.21 s": three significant digits.
std::string format_seconds(double seconds);
// "12.4 %"
std::string format_percent(double share);

// Many boxes of one colour as one element: 20 bytes a box instead of 80. Whole units.
struct SvgBox {
  int64_t x = 0, y = 0, width = 0, height = 0;
};
class BoxPath {
 public:
  void add(const SvgBox& box);
  // Empty if there are no boxes. `css` is the class that colours it.
  std::string path(std::string_view css) const;

 private:
  std::string d_;
};

struct StretchedSvg {
  int64_t width = 0, height = 0;
  std::string label = {};  // for those who do not see it
  std::string body;
};
std::string stretched_svg(const StretchedSvg& svg);

// Points (x, y) in units of a stretched SVG, as a line and as an area down to `base`.
std::string svg_line(const std::vector<std::pair<double, double>>& points, std::string_view css);
std::string svg_area(const std::vector<std::pair<double, double>>& points, double base, std::string_view css);

// A chart with its axes; `body` fills `height` pixels.
struct Chart {
  std::string top, middle, bottom;  // labels of the vertical axis
  std::vector<std::string> along;   // labels of the horizontal axis, evenly spaced
  int height = 160;
  std::string body;
};
std::string chart(const Chart& c);

// Swatches with names: {"computed", "computing"}.
std::string legend(const std::vector<std::pair<std::string, std::string>>& entries);

// The least "round" number (1, 1.5, 2, 3, 4, 5, 6, 8 × 10^n) that is not below `value`, which is > 0.
double round_limit(double value);

}  // namespace ridge
