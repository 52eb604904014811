#include "report/roofline_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "base/printable.h"
#include "report/markup.h"

namespace ridge {
namespace {

constexpr double kLeft = 72, kRight = 20, kTop = 44, kBottom = 54;

// Okabe and Ito (2008), without yellow, which is too light on white.
constexpr const char* kColours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00"};

constexpr const char* kStyle =
    "<style>"
    "svg{--ground:#fff;--text:#1f2933;--faint:#616e7c;--grid:#e4e7eb}"
    "@media(prefers-color-scheme:dark){svg{--ground:#16191d;--text:#e4e7eb;--faint:#9aa5b1;--grid:#323f4b}}"
    ".ground{fill:var(--ground)}.t{fill:var(--text)}.f{fill:var(--faint)}.g{stroke:var(--grid)}"
    "text{font:13px system-ui,sans-serif}.title{font-size:16px;font-weight:600}"
    ".roof{fill:none;stroke-width:2}.dash{stroke-dasharray:6 4}.dots{stroke-dasharray:2 4}"
    ".p{stroke:var(--ground);stroke-width:1.2}.p:hover{stroke:var(--text);stroke-width:2.5}"
    ".above{stroke:#d55e00;stroke-width:3}"
    "</style>";

struct Axis {
  double low = 1, high = 10;  // powers of ten around everything
  double begin = 0, end = 1;  // pixels
  double at(double value) const {
    return begin + (std::log10(value) - std::log10(low)) / (std::log10(high) - std::log10(low)) * (end - begin);
  }
  bool holds(double value) const { return value >= low * 0.999 && value <= high * 1.001; }
};

Axis axis_around(double least, double most, double begin, double end) {
  Axis a{.begin = begin, .end = end};
  if (least <= 0 || most <= 0) return a;
  // Halves of a decade keep the points apart.
  a.low = std::pow(10, std::floor(2 * std::log10(least) - 0.2) / 2);
  a.high = std::pow(10, std::ceil(2 * std::log10(most) + 0.2) / 2);
  return a;
}

std::string number(double value) {
  struct Unit {
    double size;
    const char* name;
  };
  for (const Unit& u : {Unit{1e15, "P"}, {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}}) {
    if (value >= u.size) return fmt::format("{:.3g} {}", value / u.size, u.name);
  }
  return fmt::format("{:.3g}", value);
}

std::string text(double x, double y, const char* css, const char* anchor, std::string_view words) {
  return fmt::format("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", css, x, y, anchor,
                     markup(words));
}

std::string line(double x1, double y1, double x2, double y2, std::string_view attributes) {
  return fmt::format("<line {} x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", attributes, x1, y1, x2,
                     y2);
}

std::string grid(const Axis& x, const Axis& y, bool x_labels) {
  std::string out;
  auto decades = [](const Axis& a) {
    std::vector<double> values;
    for (double e = std::ceil(std::log10(a.low) - 1e-9); e <= std::log10(a.high) + 1e-9; ++e)
      values.push_back(std::pow(10, e));
    return values;
  };
  for (double v : decades(y)) {
    out += line(x.begin, y.at(v), x.end, y.at(v), "class=\"g\"");
    out += text(x.begin - 8, y.at(v) + 4, "f", "end", number(v));
  }
  if (!x_labels) return out;
  for (double v : decades(x)) {
    out += line(x.at(v), y.begin, x.at(v), y.end, "class=\"g\"");
    out += text(x.at(v), y.begin + 18, "f", "middle", number(v));
  }
  return out;
}

// A shape for each operator, about 10 pixels wide; phases are larger circles.
std::string mark(const RooflinePoint& p, double x, double y, const char* colour) {
  constexpr std::string_view kPaths[kOperators] = {
      "M-4.5-4.5h9v9h-9z",                                       // qkv: square
      "M0-6L5.5 4.5h-11z",                                       // attention: triangle
      "M0-6L6 0L0 6L-6 0z",                                      // output: diamond
      "M0 6L5.5-4.5h-11z",                                       // ffn: triangle, point down
      "M-2-6h4v4h4v4h-4v4h-4v-4h-4v-4h4z",                       // experts: plus
      "M-6-3L-3-6L0-3L3-6L6-3L3 0L6 3L3 6L0 3L-3 6L-6 3L-3 0z",  // head: cross
      "M-3-3h6v6h-6z"};
  std::string shape = "<circle r=\"8\"";
  for (size_t i = 0; i < kOperators; ++i) {
    if (p.op == name_of(static_cast<Operator>(i))) shape = fmt::format("<path d=\"{}\"", kPaths[i]);
  }
  return fmt::format(
      "<g transform=\"translate({:.1f} {:.1f})\">{} class=\"p{}\" fill=\"{}\"><title>{}</title>{}</g>\n", x, y, shape,
      p.above ? " above" : "", colour,
      markup(fmt::format("{}, {}: {}\nOI {:.3g} op/byte, {}op/s, {:.0f} % of its roof", p.model, p.machine, p.sentence,
                         p.placed.oi, number(p.placed.ops_per_s), p.placed.eta * 100)),
      p.op == "all" ? "</circle>" : "</path>");
}

std::string axis_titles(const RooflineChart& c, std::string_view x, std::string_view y) {
  return text((kLeft + c.width - kRight) / 2, c.height - 12, "t", "middle", x) +
         fmt::format(
             "<text class=\"t\" transform=\"translate(16 {:.0f}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
             (c.height - kBottom + kTop) / 2, y);
}

// A line of the legend: the first, the second, … at the top left.
std::string legend(size_t index, const char* colour, std::string_view name) {
  const double at = kTop + 12 + 19 * static_cast<double>(index);
  return fmt::format("<circle r=\"6\" cx=\"{:.1f}\" cy=\"{:.1f}\" fill=\"{}\"/>\n", kLeft + 14, at, colour) +
         text(kLeft + 26, at + 4, "t", "start", name);
}

std::string frame(const RooflineChart& c, const std::string& body) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" role=\"img\" aria-label=\"{2}\">\n{3}\n"
      "<rect class=\"ground\" width=\"{0}\" height=\"{1}\"/>\n<text class=\"t title\" x=\"{4:.0f}\" "
      "y=\"26\">{2}</text>\n{5}"
      "</svg>\n",
      c.width, c.height, markup(c.title), kStyle, kLeft, body);
}

// What has a colour: a machine where there are several, else a phase of a model.
class Series {
 public:
  explicit Series(std::span<const RooflinePoint> points) {
    for (const RooflinePoint& p : points) by_machine_ = by_machine_ || p.machine != points[0].machine;
    for (const RooflinePoint& p : points) {
      if (std::find(names_.begin(), names_.end(), name(p)) == names_.end()) names_.push_back(name(p));
    }
  }
  const char* colour(const RooflinePoint& p) const {
    const auto at = std::find(names_.begin(), names_.end(), name(p));
    return kColours[static_cast<size_t>(at - names_.begin()) % std::size(kColours)];
  }
  bool by_machine() const { return by_machine_; }
  std::string name(const RooflinePoint& p) const {
    return by_machine_ ? p.machine : fmt::format("{}, {}", p.model, name_of(p.phase));
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  bool by_machine_ = false;
  std::vector<std::string> names_;
};

// The roofs of one machine: a diagonal for each level, a horizontal for each peak.
struct MachineLines {
  std::map<std::string, double> levels;  // 1e9 bytes per second
  // Of unpacking weights, in bytes of all that a point reads, by models: dotted.
  std::map<std::string, double> formats;
  double int8_gops = 0, float_gops = 0;
  const char* colour = nullptr;
};

std::map<std::string, MachineLines> roofs(std::span<const RooflinePoint> points, const Series& series) {
  std::map<std::string, MachineLines> lines;
  for (const RooflinePoint& p : points) {
    MachineLines& m = lines[p.machine];
    double& level = m.levels[p.level];
    level = std::max(level, p.roofs.read_gb_per_s);
    if (p.op == "all" && p.roofs.format_gb_per_s > 0 && p.work.cost.memory_bytes > 0) {
      // Keys and values are not unpacked: with them a point reads more bytes in the same time.
      const double all = p.work.bytes() / static_cast<double>(p.work.cost.memory_bytes);
      double& format = m.formats[p.model];
      format = std::max(format, p.roofs.format_gb_per_s * all);
    }
    m.int8_gops = std::max(m.int8_gops, p.roofs.int8_gops);
    m.float_gops = std::max(m.float_gops, p.roofs.float_gops);
    m.colour = series.by_machine() ? series.colour(p) : nullptr;
  }
  return lines;
}

std::string roof_lines(const MachineLines& m, const Axis& x, const Axis& y) {
  std::string out;
  const std::string stroke =
      m.colour != nullptr ? fmt::format("style=\"stroke:{}\"", m.colour) : "style=\"stroke:var(--faint)\"";
  const double top = std::max(m.int8_gops, m.float_gops) * 1e9;
  auto diagonal = [&](const std::string& name, double gb, const char* css, double along) {
    if (gb <= 0 || top <= 0) return;
    const double rate = gb * 1e9, from = std::max(x.low, y.low / rate), to = std::min(x.high, top / rate);
    if (from >= to) return;
    out += line(x.at(from), y.at(from * rate), x.at(to), y.at(to * rate), css + stroke);
    // The words run along the line.
    const double angle = std::atan2(y.at(to * rate) - y.at(from * rate), x.at(to) - x.at(from)) * 180 / M_PI;
    const double at = from * std::pow(to / from, along);
    out += fmt::format("<text class=\"f\" transform=\"translate({:.1f} {:.1f}) rotate({:.1f})\">{}</text>\n", x.at(at),
                       y.at(at * rate) - 6, angle, markup(fmt::format("{} {}B/s", name, number(rate))));
  };
  for (const auto& [level, gb] : m.levels) diagonal(level, gb, "class=\"roof\" ", 0.06);
  // Further up, where the words of the levels are not.
  for (const auto& [model, gb] : m.formats) {
    diagonal(m.formats.size() == 1 ? "unpacking" : "unpacking " + printable(model), gb, "class=\"roof dots\" ", 0.45);
  }
  struct Peak {
    const char* name;
    double gops;
  };
  double last = 0;
  for (const Peak& peak : {Peak{"int8", m.int8_gops}, {"float", m.float_gops}}) {
    const double value = peak.gops * 1e9;
    if (value <= 0 || value == last || !y.holds(value)) continue;
    last = value;
    double fastest = 0;
    for (const auto& [level, gb] : m.levels) fastest = std::max(fastest, gb);
    const double from = fastest > 0 ? std::clamp(value / (fastest * 1e9), x.low, x.high) : x.low;
    out += line(x.at(from), y.at(value), x.end, y.at(value), "class=\"roof dash\" " + stroke);
    out += text(x.end - 4, y.at(value) - 6, "f", "end", fmt::format("{} {}op/s", peak.name, number(value)));
  }
  return out;
}

}  // namespace

std::string roofline_svg(std::span<const RooflinePoint> points, const RooflineChart& c) {
  std::vector<RooflinePoint> shown;
  for (const RooflinePoint& p : points) {
    if (p.placed.roof != Roof::none && p.placed.oi > 0 && p.placed.ops_per_s > 0) shown.push_back(p);
  }
  if (shown.empty()) return "";
  double least_x = 1e300, most_x = 0, least_y = 1e300, most_y = 0;
  for (const RooflinePoint& p : shown) {
    least_x = std::min(least_x, p.placed.oi);
    most_x = std::max({most_x, p.placed.oi, p.placed.ridge});
    least_y = std::min(least_y, p.placed.ops_per_s);
    most_y = std::max({most_y, p.placed.ops_per_s, p.roofs.int8_gops * 1e9, p.roofs.float_gops * 1e9});
  }
  const Axis x = axis_around(least_x, most_x, kLeft, c.width - kRight);
  const Axis y = axis_around(least_y, most_y, c.height - kBottom, kTop);
  const Series series(shown);
  std::string body = grid(x, y, true);
  for (const auto& [name, lines] : roofs(shown, series)) body += roof_lines(lines, x, y);
  // Operators first, so that the phases lie on top.
  for (bool whole : {false, true}) {
    for (const RooflinePoint& p : shown) {
      if ((p.op == "all") != whole) continue;
      const double px = x.at(p.placed.oi), py = y.at(p.placed.ops_per_s);
      body += mark(p, px, py, series.colour(p));
      if (whole) body += text(px + 11, py + 15, "t", "start", name_of(p.phase));
    }
  }
  body += axis_titles(c, "operational intensity, operations per byte of memory", "operations per second");
  for (size_t i = 0; i < series.names().size(); ++i) {
    const std::string& name = series.names()[i];
    auto one = std::find_if(shown.begin(), shown.end(), [&](const RooflinePoint& p) { return series.name(p) == name; });
    body += legend(i, series.colour(*one), printable(name));
  }
  return frame(c, body);
}

std::string rates_svg(std::span<const RooflinePoint> points, const RooflineChart& c) {
  std::vector<RooflinePoint> shown;
  for (const RooflinePoint& p : points) {
    if (p.op == "all" && p.tokens_per_s() > 0) shown.push_back(p);
  }
  if (shown.empty()) return "";
  double least = 1e300, most = 0;
  for (const RooflinePoint& p : shown) {
    least = std::min(least, p.tokens_per_s());
    most = std::max(most, p.tokens_per_s());
  }
  const Axis y = axis_around(least, most, c.height - kBottom, kTop);
  const Axis x{.begin = kLeft, .end = c.width - kRight};
  std::string body = grid(x, y, false);
  for (BenchTest phase : {BenchTest::prefill, BenchTest::decode}) {
    std::vector<const RooflinePoint*> row;
    for (const RooflinePoint& p : shown) {
      if (p.phase == phase) row.push_back(&p);
    }
    const char* colour = kColours[phase == BenchTest::prefill ? 0 : 1];
    std::string path;
    for (size_t i = 0; i < row.size(); ++i) {
      const RooflinePoint& p = *row[i];
      const double px = x.begin + (static_cast<double>(i) + 0.5) / static_cast<double>(row.size()) * (x.end - x.begin);
      path += fmt::format("{}{:.1f} {:.1f}", i == 0 ? "M" : "L", px, y.at(p.tokens_per_s()));
      body += fmt::format(
          "<circle class=\"p\" r=\"6\" cx=\"{:.1f}\" cy=\"{:.1f}\" fill=\"{}\"><title>{}</title></circle>\n", px,
          y.at(p.tokens_per_s()), colour,
          markup(fmt::format("{}, {}, {} threads, {}: {:.4g} tok/s", p.model, p.scenario, p.threads, p.machine,
                             p.tokens_per_s())));
      if (phase == BenchTest::decode) {
        body += text(px, c.height - kBottom + 18, "f", "middle", std::to_string(i + 1));
      }
    }
    body += fmt::format("<path class=\"roof\" style=\"stroke:{}\" d=\"{}\"/>\n", colour, path);
    body += legend(phase == BenchTest::prefill ? 0 : 1, colour, name_of(phase));
  }
  body += axis_titles(c, "row of the table below", "tokens per second");
  return frame(c, body);
}

}  // namespace ridge
