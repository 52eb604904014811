#include "report/svg.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "report/markup.h"

namespace ridge {

std::string format_seconds(double seconds) {
  auto three = [](double value, const char* unit) {
    const int decimals = value >= 100 ? 0 : value >= 10 ? 1 : 2;
    return fmt::format("{:.{}f} {}", value, decimals, unit);
  };
  if (seconds >= 600) return three(seconds / 60, "min");
  if (seconds >= 0.9995) return three(seconds, "s");
  if (seconds >= 0.9995e-3) return three(seconds * 1e3, "ms");
  if (seconds > 0) return three(seconds * 1e6, "µs");
  return "0 s";
}

std::string format_percent(double share) { return fmt::format("{:.{}f} %", share * 100, share < 0.0995 ? 1 : 0); }

void BoxPath::add(const SvgBox& box) {
  fmt::format_to(std::back_inserter(d_), "M{} {}h{}v{}h-{}z", box.x, box.y, box.width, box.height, box.width);
}

std::string BoxPath::path(std::string_view css) const {
  return d_.empty() ? "" : fmt::format("<path class=\"{}\" d=\"{}\"/>", css, d_);
}

std::string stretched_svg(const StretchedSvg& svg) {
  return fmt::format("<svg viewBox=\"0 0 {} {}\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{}\">{}</svg>",
                     svg.width, svg.height, markup(svg.label), svg.body);
}

namespace {

std::string points_text(const std::vector<std::pair<double, double>>& points) {
  std::string text;
  for (const auto& [x, y] : points) fmt::format_to(std::back_inserter(text), "{:.1f},{:.1f} ", x, y);
  return text;
}

}  // namespace

std::string svg_line(const std::vector<std::pair<double, double>>& points, std::string_view css) {
  return fmt::format("<polyline class=\"line {}\" points=\"{}\"/>", css, points_text(points));
}

std::string svg_area(const std::vector<std::pair<double, double>>& points, double base, std::string_view css) {
  if (points.empty()) return "";
  return fmt::format("<polygon class=\"{}\" points=\"{:.1f},{:.1f} {}{:.1f},{:.1f}\"/>", css, points.front().first,
                     base, points_text(points), points.back().first, base);
}

std::string chart(const Chart& c) {
  std::string along;
  for (const std::string& label : c.along) along += fmt::format("<span>{}</span>", markup(label));
  return fmt::format(
      "<div class=\"chart\"><div class=\"up\"><span>{}</span><span>{}</span><span>{}</span></div>"
      "<div class=\"area\" style=\"height:{}px\">{}</div><div class=\"along\">{}</div></div>\n",
      markup(c.top), markup(c.middle), markup(c.bottom), c.height, c.body, along);
}

std::string legend(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string text = "<p class=\"legend\">";
  for (const auto& [css, name] : entries) {
    text += fmt::format(
        "<span><svg class=\"swatch\" aria-hidden=\"true\"><rect class=\"{}\" width=\"12\" "
        "height=\"12\"/></svg>{}</span>",
        css, markup(name));
  }
  return text + "</p>\n";
}

double round_limit(double value) {
  const double scale = std::pow(10.0, std::floor(std::log10(value)));
  for (double step : {1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0}) {
    if (value <= step * scale * (1 + 1e-9)) return step * scale;
  }
  return 10 * scale;
}

}  // namespace ridge
