#include "report/curve_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "report/markup.h"
#include "report/svg.h"

namespace ridge {
namespace {

// Speed at a budget: that of the last point at or below it, since a plan needs all of its budget.
double speed_at(const BudgetCurve& curve, double budget) {
  double speed = 0;
  for (const CurvePoint& p : curve.points) {
    if (static_cast<double>(p.budget) <= budget) speed = p.tokens_per_s;
  }
  return speed;
}

struct Frame {
  double low = 0, high = 0;  // budgets
  double top = 0;            // speed
};

Frame frame_of(const BudgetCurve& curve) {
  Frame f;
  f.low = static_cast<double>(curve.points.front().budget);
  f.high = static_cast<double>(std::max(curve.points.back().budget, curve.points.front().budget + kMiB));
  for (const CurvePoint& p : curve.points) f.top = std::max(f.top, p.tokens_per_s);
  f.top = f.top > 0 ? round_limit(f.top) : 1;
  return f;
}

bool inside(const Frame& f, const ChartMark& mark) {
  return static_cast<double>(mark.budget) >= f.low && static_cast<double>(mark.budget) <= f.high;
}

std::string number(double value) { return value >= 100 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value); }

// The column of a budget, 0 to columns - 1.
int column_of(const Frame& f, double budget, int columns) {
  return std::clamp(static_cast<int>((budget - f.low) / (f.high - f.low) * columns), 0, columns - 1);
}

std::string cell(double filled, bool utf8) {  // of a character's height, in eighths
  static constexpr const char* kEighths[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const int eighths = std::clamp(static_cast<int>(std::lround(filled * 8)), 0, 8);
  if (utf8) return kEighths[eighths];
  return eighths >= 4 ? "#" : " ";
}

}  // namespace

std::string terminal_chart(const BudgetCurve& curve, const ChartOptions& options) {
  const Frame f = frame_of(curve);
  const char *corner = options.utf8 ? "└" : "+", *wall = options.utf8 ? "│" : "|", *floor = options.utf8 ? "─" : "-",
             *arrow = options.utf8 ? "▲" : "^";
  std::string text;
  for (int row = options.rows - 1; row >= 0; --row) {
    const bool label = row == options.rows - 1 || row == options.rows / 2 - 1;
    const double value = f.top * (row + 1) / options.rows;
    std::string line = fmt::format("{:>8} {}", label ? number(value) : "", wall);
    for (int c = 0; c < options.columns; ++c) {
      const double budget = f.low + (f.high - f.low) * (c + 0.999) / options.columns;
      line += cell(speed_at(curve, budget) / f.top * options.rows - row, options.utf8);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  text += fmt::format("{:>8} {}", "tok/s", corner);
  for (int c = 0; c < options.columns; ++c) text += floor;
  const std::string low = format_bytes(static_cast<uint64_t>(f.low)),
                    high = format_bytes(static_cast<uint64_t>(f.high));
  text += fmt::format("\n{:>10}{}{:>{}}\n", "", low, high,
                      std::max<int>(1, options.columns - static_cast<int>(low.size())));
  for (const ChartMark& mark : options.marks) {
    if (!inside(f, mark)) continue;
    const int column = column_of(f, static_cast<double>(mark.budget), options.columns);
    const std::string words = fmt::format("{} {}", mark.name, format_bytes(mark.budget));
    const int size = static_cast<int>(words.size());
    // The words stand on the side where there is room.
    text += column + size + 2 <= options.columns ? fmt::format("{:>{}}{} {}\n", "", 10 + column, arrow, words)
                                                 : fmt::format("{:>{}} {}\n", words, 9 + column, arrow);
  }
  return text;
}

namespace {

constexpr int kWidth = 720, kHeight = 400;
constexpr double kLeft = 64, kRight = 24, kTop = 56, kBottom = 56;

constexpr const char* kStyle =
    "<style>\n"
    "  .ground { fill: #ffffff } .text { fill: #1f2933 } .faint { fill: #616e7c } .grid { stroke: #e4e7eb }\n"
    "  .curve { stroke: #2563eb; fill: none; stroke-width: 2.5; stroke-linejoin: round } .area { fill: #2563eb; "
    "fill-opacity: .12 }\n"
    "  .mark { stroke: #b45309; stroke-dasharray: 4 3 } .name { fill: #b45309 }\n"
    "  text { font: 13px system-ui, sans-serif } .title { font-size: 16px; font-weight: 600 }\n"
    "  @media (prefers-color-scheme: dark) {\n"
    "    .ground { fill: #16191d } .text { fill: #e4e7eb } .faint { fill: #9aa5b1 } .grid { stroke: #323f4b }\n"
    "    .curve { stroke: #7aa7ff } .area { fill: #7aa7ff } .mark { stroke: #f0b429 } .name { fill: #f0b429 }\n"
    "  }\n"
    "</style>\n";

class Svg {
 public:
  explicit Svg(const Frame& frame) : f_(frame) {}
  double x(double budget) const { return kLeft + (budget - f_.low) / (f_.high - f_.low) * (kWidth - kLeft - kRight); }
  double y(double speed) const { return kHeight - kBottom - speed / f_.top * (kHeight - kTop - kBottom); }

  std::string grid() const {
    constexpr int kLines = 4;
    std::string out;
    for (int i = 0; i <= kLines; ++i) {
      const double speed = f_.top * i / kLines, budget = f_.low + (f_.high - f_.low) * i / kLines;
      out += fmt::format("<line class=\"grid\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>\n", kLeft,
                         kWidth - kRight, y(speed), y(speed));
      out += fmt::format("<text class=\"faint\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", kLeft - 8,
                         y(speed) + 4, number(speed));
      out += fmt::format("<text class=\"faint\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x(budget),
                         kHeight - kBottom + 20,
                         i == 0        ? "start"
                         : i == kLines ? "end"
                                       : "middle",
                         format_bytes(static_cast<uint64_t>(budget)));
    }
    return out;
  }

  std::string curve(const std::vector<CurvePoint>& points) const {
    std::string line;
    for (const CurvePoint& p : points) {
      line += fmt::format("{}{:.1f},{:.1f}", line.empty() ? "M" : " L", x(static_cast<double>(p.budget)),
                          y(p.tokens_per_s));
    }
    return fmt::format(
        "<path class=\"area\" d=\"{} L{:.1f},{:.1f} L{:.1f},{:.1f} Z\"/>\n<path class=\"curve\" d=\"{}\"/>\n", line,
        x(f_.high), y(0), x(f_.low), y(0), line);
  }

  std::string mark(const ChartMark& m, int number) const {
    const double at = x(static_cast<double>(m.budget));
    const bool left = at > kWidth * 0.7;
    const double text_y = kTop + 6 + 18 * number;
    return fmt::format(
        "<line class=\"mark\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\"/>\n"
        "<text class=\"name\" x=\"{3:.1f}\" y=\"{4:.1f}\" text-anchor=\"{5}\">{6}: {7}</text>\n",
        at, kTop, kHeight - kBottom, at + (left ? -6 : 6), text_y, left ? "end" : "start", markup(m.name),
        format_bytes(m.budget));
  }

 private:
  Frame f_;
};

}  // namespace

std::string svg_chart(const BudgetCurve& curve, const ChartOptions& options) {
  const Frame f = frame_of(curve);
  const Svg svg(f);
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" role=\"img\">\n"
      "<title>{2}: tokens per second over the memory budget</title>\n{3}"
      "<rect class=\"ground\" width=\"{0}\" height=\"{1}\"/>\n"
      "<text class=\"text title\" x=\"{4:.0f}\" y=\"26\">{2}</text>\n"
      "<text class=\"faint\" x=\"{4:.0f}\" y=\"45\">predicted tokens per second of decoding</text>\n",
      kWidth, kHeight, markup(options.title), kStyle, kLeft);
  out += svg.grid() + svg.curve(curve.points);
  int marks = 0;
  for (const ChartMark& m : options.marks) {
    if (inside(f, m)) out += svg.mark(m, marks++);
  }
  out += fmt::format(
      "<text class=\"faint\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">memory budget of the whole "
      "process</text>\n</svg>\n",
      (kWidth + kLeft - kRight) / 2, kHeight - kBottom + 42.0);
  return out;
}

}  // namespace ridge
