#include "report/roofline_html.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/printable.h"
#include "base/units.h"
#include "report/markup.h"
#include "report/page_style.h"
#include "report/paper_report.h"
#include "report/roofline_chart.h"
#include "report/roofline_report.h"

namespace ridge {
namespace {

using Points = std::vector<RooflinePoint>;

// Points by scenario, in order.
std::vector<std::pair<std::string, Points>> by_scenario(const RooflineReport& report) {
  std::vector<std::pair<std::string, Points>> groups;
  for (const RooflinePoint& p : report.points) {
    auto at = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == p.scenario; });
    if (at == groups.end()) at = groups.insert(groups.end(), {p.scenario, {}});
    at->second.push_back(p);
  }
  return groups;
}

std::string chart_title(const RooflineReport& report, const Points& points) {
  const RooflinePoint& p = points.front();
  std::string what = report.models.size() == 1 ? p.model : fmt::format("{} models", report.models.size());
  return fmt::format("{}, {}: {} tokens in, {} out", printable(what), p.scenario, p.prompt, p.answer);
}

std::string cell(std::string_view words, const char* css = "") {
  return fmt::format("<td{}>{}</td>", *css == '\0' ? "" : fmt::format(" class=\"{}\"", css), markup(words));
}

std::string row(const RooflinePoint& p) {
  const bool whole = p.op == "all", placed = p.placed.roof != Roof::none;
  auto if_placed = [&](std::string words) { return cell(placed ? words : "–"); };
  std::string text = whole ? "<tr class=\"phase\">" : "<tr>";
  text += cell(whole ? std::string(name_of(p.phase)) : fmt::format("  {}", p.op));
  text += cell(whole ? roofline_figure(p.tokens_per_s(), "–") : "");
  text += cell(fmt::format("{:.0f} %", p.share * 100)) + cell(roofline_figure(p.seconds * 1e3, "–")) +
          cell(roofline_figure(p.bound_s * 1e3, "–"));
  text += if_placed(roofline_figure(p.placed.oi, "–")) + if_placed(roofline_figure(p.placed.ops_per_s * 1e-9, "–")) +
          if_placed(roofline_figure(p.placed.bytes_per_s * 1e-9, "–"));
  text += if_placed(p.placed.roof == Roof::memory ? p.level : std::string(name_of(p.placed.roof)));
  text += placed ? cell(fmt::format("{:.0f} %", p.placed.eta * 100), p.above ? "bad" : "") : cell("–");
  text += if_placed(fmt::format("{:.0f} %", p.placed.mbu * 100)) +
          if_placed(fmt::format("{:.0f} %", p.placed.mfu * 100)) + if_placed(fmt::format("{:.2f}", p.placed.phi)) +
          if_placed(fmt::format("{:.2f}", p.placed.phi_normalised));
  return text + "</tr>\n";
}

std::string table(const Points& points) {
  std::string text =
      "<div class=\"wide\"><table><tr><th></th><th>tok/s</th><th>time</th><th>ms</th><th>bound ms</th><th>op/byte</th>"
      "<th>Gop/s</th><th>GB/s</th><th>roof</th><th>η</th><th>MBU</th><th>MFU</th><th>Φ</th><th>Φ norm.</th></tr>\n";
  std::string last;
  for (const RooflinePoint& p : points) {
    const std::string place =
        fmt::format("{}, {}{}", p.model, p.machine, p.measured ? fmt::format(", {} threads", p.threads) : ", computed");
    if (place != last) {
      text += fmt::format("<tr><td class=\"l faint\" colspan=\"14\">{}</td></tr>\n", markup(printable(place)));
      last = place;
    }
    text += row(p);
  }
  return text + "</table></div>\n";
}

std::string sentences(const Points& points) {
  std::string text;
  std::vector<std::string> said;
  for (const RooflinePoint& p : points) {
    if (p.op != "all" && !p.above) continue;
    const std::string words = fmt::format("{}{}: {}.", p.model, p.measured ? "" : " on " + p.machine, p.sentence);
    if (std::find(said.begin(), said.end(), words) != said.end()) continue;
    said.push_back(words);
    text += fmt::format("<p{}>{}</p>\n", p.above ? " class=\"bad\"" : "", markup(printable(words)));
  }
  return text;
}

std::string machine_facts(const RooflineReport& report) {
  std::string text;
  for (const RooflineModel& m : report.models) {
    text += fmt::format("<p>{} ({}): a token reads {} of weights</p>\n", markup(printable(m.name)),
                        markup(printable(m.architecture)), format_bytes(m.weight_bytes));
  }
  std::vector<std::string> said;
  for (const RooflinePoint& p : report.points) {
    if (p.op != "all" || std::find(said.begin(), said.end(), p.machine) != said.end()) continue;
    said.push_back(p.machine);
    text +=
        fmt::format("<p>{}: {} of {:.1f} GB/s, int8 {:.0f} Gop/s, float {:.0f} Gop/s{}</p>\n",
                    markup(printable(p.machine)), markup(p.level), p.roofs.read_gb_per_s, p.roofs.int8_gops,
                    p.roofs.float_gops, p.measured ? fmt::format(" ({} threads)", p.threads) : ", from its profile");
  }
  for (const RooflinePoint& p : report.points) {
    if (p.contention.empty()) continue;
    text += fmt::format("<p class=\"bad\">contended while measured: {}</p>\n", markup(p.contention));
    break;
  }
  return text;
}

}  // namespace

std::string roofline_html(const RooflineReport& report, const RooflinePage& page) {
  std::string text = page_begin("Ridge roofline");
  text += fmt::format("<h1>Roofline</h1>\n<p class=\"faint\">ridge {}, {}, numerics {}</p>\n", markup(report.version),
                      markup(report.machine.measured_at), markup(report.numerics));
  text += machine_facts(report);
  const auto groups = by_scenario(report);
  const bool sweep = groups.size() > 4 || report.models.size() > 3 || !report.notes.empty();
  if (sweep)
    text += fmt::format("<h2>Along the sweep</h2>\n<div class=\"wide\">{}</div>\n",
                        rates_svg(report.points, {.title = "tokens per second"}));
  for (const std::string& note : report.notes) text += fmt::format("<p>{}</p>\n", markup(printable(note)));
  for (const auto& [name, points] : groups) {
    text += fmt::format("<h2>{}</h2>\n", markup(printable(name)));
    text += fmt::format("<div class=\"wide\">{}</div>\n", roofline_svg(points, {.title = chart_title(report, points)}));
    text += sentences(points) + table(points);
  }
  const std::string compat = compat_table(report);
  if (!compat.empty()) {
    text += fmt::format("<h2>The paper's formulas</h2>\n<div class=\"wide\"><pre>{}</pre></div>\n", markup(compat));
  }
  text += fmt::format(
      "<h2>To read and repeat it</h2>\n<p>Circles are phases; square qkv, triangle attention, diamond output, inverted "
      "triangle ffn, plus experts, cross head. Operations are int8 and float ones, a multiply-add is two; bytes are "
      "weights as the kernels read them, keys and values. η: share of the lowest roof; Φ: distance to the ridge in "
      "octaves.</p>\n<p><code>{}</code></p>\n</body></html>\n",
      markup(printable(page.command)));
  return text;
}

std::string first_roofline_svg(const RooflineReport& report) {
  const auto groups = by_scenario(report);
  return groups.empty() ? "" : roofline_svg(groups[0].second, {.title = chart_title(report, groups[0].second)});
}

}  // namespace ridge
