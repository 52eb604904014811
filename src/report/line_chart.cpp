#include "report/line_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "report/markup.h"

namespace ridge {
namespace {

constexpr double kWidth = 720, kHeight = 400, kLeft = 70, kRight = 20, kTop = 70, kBottom = 50;
// Okabe and Ito's colours, which those with colour blindness tell apart.
constexpr std::array kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"};

struct Range {
  double low = INFINITY, high = -INFINITY, step = 1;
  void take(double v) {
    if (!std::isfinite(v)) return;
    low = std::min(low, v);
    high = std::max(high, v);
  }
  // Never empty, so that one point has a place; ends at multiples of `step`, which is 1, 2 or 5 times a power of ten.
  void settle() {
    if (low > high) low = 0, high = 1;
    if (low == high) high = low + std::max(1e-9, std::abs(low) * 0.01);
    constexpr double kLines = 5;
    const double rough = (high - low) / kLines, ten = std::pow(10, std::floor(std::log10(rough)));
    step = ten * (rough > 5 * ten ? 10 : rough > 2 * ten ? 5 : rough > ten ? 2 : 1);
    low = std::floor(low / step) * step;
    high = std::ceil(high / step) * step;
  }
  int steps() const { return static_cast<int>(std::lround((high - low) / step)); }
  // A last digit that is noise does not show: 0 instead of 1e-17.
  double at(int i) const {
    const double value = low + i * step;
    return std::abs(value) < step / 1e6 ? 0 : value;
  }
  double part(double v) const { return (v - low) / (high - low); }
};

struct Frame {
  Range x, y;
  double at_x(double v) const { return kLeft + x.part(v) * (kWidth - kLeft - kRight); }
  double at_y(double v) const { return kHeight - kBottom - y.part(v) * (kHeight - kTop - kBottom); }
};

std::string grid(const Frame& f) {
  std::string out;
  for (int i = 0; i <= f.y.steps(); ++i) {
    const double y = f.y.at(i);
    out += fmt::format(
        "<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{1:.1f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>\n"
        "<text class=\"faint\" x=\"{3:.1f}\" y=\"{4:.1f}\" text-anchor=\"end\">{5:.6g}</text>\n",
        kLeft, kWidth - kRight, f.at_y(y), kLeft - 8, f.at_y(y) + 4, y);
  }
  for (int i = 0; i <= f.x.steps(); ++i) {
    const double x = f.x.at(i);
    out += fmt::format("<text class=\"faint\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{:.6g}</text>\n",
                       f.at_x(x), kHeight - kBottom + 20, x);
  }
  return out;
}

std::string path_of(const Frame& f, const ChartLine& line, const char* colour) {
  std::string d;
  for (const auto& [x, y] : line.points) {
    if (std::isfinite(y)) d += fmt::format("{}{:.1f},{:.1f}", d.empty() ? "M" : " L", f.at_x(x), f.at_y(y));
  }
  return fmt::format("<path fill=\"none\" stroke-width=\"2\" stroke=\"{}\" d=\"{}\"/>\n", colour,
                     d.empty() ? "M0,0" : d);
}

}  // namespace

std::string line_chart(const LineChart& chart) {
  Frame f;
  for (const ChartLine& line : chart.lines) {
    for (const auto& [x, y] : line.points) f.x.take(x), f.y.take(y);
  }
  f.x.settle();
  f.y.settle();
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" role=\"img\">\n"
      "<style>\n  .ground {{ fill: #fff }} .text {{ fill: #1f2933 }} .faint {{ fill: #52606d }} .grid {{ stroke: "
      "#d9dee4 }}\n"
      "  text {{ font: 13px system-ui, sans-serif }} .title {{ font-size: 16px; font-weight: 600 }}\n"
      "  @media (prefers-color-scheme: dark) {{ .ground {{ fill: #16191d }} .text {{ fill: #e4e7eb }} .faint {{ fill: "
      "#9aa5b1 }} .grid {{ stroke: #323f4b }} }}\n</style>\n"
      "<rect class=\"ground\" width=\"{0}\" height=\"{1}\"/>\n"
      "<text class=\"text title\" x=\"{2}\" y=\"26\">{3}</text>\n",
      kWidth, kHeight, kLeft, markup(chart.title));
  out += grid(f);
  double legend = kLeft;
  for (size_t i = 0; i < chart.lines.size(); ++i) {
    const char* colour = kColours[i % kColours.size()];
    out += path_of(f, chart.lines[i], colour);
    out += fmt::format("<rect x=\"{:.1f}\" y=\"42\" width=\"12\" height=\"12\" fill=\"{}\"/>\n", legend, colour);
    out +=
        fmt::format("<text class=\"text\" x=\"{:.1f}\" y=\"53\">{}</text>\n", legend + 18, markup(chart.lines[i].name));
    legend += 34 + 7.5 * static_cast<double>(chart.lines[i].name.size());
  }
  out += fmt::format("<text class=\"faint\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", kWidth - kRight,
                     kHeight - 10, markup(chart.x));
  out += fmt::format("<text class=\"faint\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n</svg>\n", kLeft, kHeight - 10,
                     markup(chart.y));
  return out;
}

}  // namespace ridge
