#include "report/roofline_history.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "report/csv.h"
#include "report/roofline_report.h"

namespace ridge {
namespace {

using Json = nlohmann::ordered_json;

// What must be alike for two speeds to mean the same work.
std::string work_of(const KeptPoint& p) {
  return fmt::format("{}, {}: {} tokens in, {} out; {}{}", printable(p.model), printable(p.scenario), p.prompt,
                     p.answer, printable(p.phase), p.phase == "decode" ? fmt::format(" at depth {}", p.depth) : "");
}

// Cut by what is seen, never within a character.
std::string cut(const std::string& text, size_t columns) {
  size_t seen = 0, at = 0;
  for (; at < text.size(); ++at) {
    const bool begins = (static_cast<unsigned char>(text[at]) & 0xc0) != 0x80;
    if (begins && seen++ == columns) break;
  }
  std::string out = text.substr(0, at);
  if (seen < columns) out.append(columns - seen, ' ');
  return out;
}

// Numerics, cache and budget where they are not the usual ones: they make another comparison.
std::string settings_of(const KeptPoint& p) {
  std::string text;
  auto add = [&](const std::string& what) { text += (text.empty() ? "" : ", ") + what; };
  if (!p.measured) add("computed");
  if (p.numerics != "default") add(printable(p.numerics));
  if (!p.kv_type.empty() && p.kv_type != "f16") add(printable(p.kv_type) + " cache");
  if (p.memory_budget != 0) add(fmt::format("{} MiB", p.memory_budget >> 20));
  if (p.contended) add("contended");
  if (p.above_roof) add("above its roof");
  return text;
}

std::string table(const std::vector<KeptPoint>& points) {
  std::string text, last;
  double first = 0;
  for (const KeptPoint& p : points) {
    const std::string work = work_of(p);
    if (work != last) {
      text +=
          fmt::format("{}{}\n{:>4}  {:<10}  {:<8}  {:<22}{:>4}{:>9}{:>7}{:>8}{:>7}  {:<8}\n", text.empty() ? "" : "\n",
                      work, "run", "date", "version", "machine", "thr", "tok/s", "ratio", "GB/s", "eta", "roof");
      last = work;
      first = p.tokens_per_s;
    }
    const std::string settings = settings_of(p);
    text +=
        fmt::format("{:>4}  {}  {}  {}{:>4}{:>9}{:>7}{:>8}{:>7}  {}{}\n", p.run, cut(printable(p.measured_at), 10),
                    cut(printable(p.version), 8), cut(printable(p.machine), 22), p.threads,
                    roofline_figure(p.tokens_per_s), first > 0 ? fmt::format("{:.2f}", p.tokens_per_s / first) : "-",
                    roofline_figure(p.bytes_per_s * 1e-9), p.eta > 0 ? fmt::format("{:.0f} %", p.eta * 100) : "-",
                    printable(p.roof), settings.empty() ? "" : fmt::format("\n{:>6}({})", "", settings));
  }
  if (text.empty()) return "no rooflines are kept yet\n";
  return text + "\nratio: tokens per second by those of the first row; eta: share of the roof that binds\n";
}

Json row_of(const KeptPoint& p) {
  Json row;
  each_column(p, [&](std::string_view column, const auto& field) {
    row[std::string(column.substr(column.find_last_of(" .") + 1))] = field;
  });
  return row;
}

}  // namespace

std::string roofline_history(const std::vector<KeptPoint>& points, RooflineFormat format) {
  if (format == RooflineFormat::table) return table(points);
  std::vector<Json> rows;
  for (const KeptPoint& p : points) rows.push_back(row_of(p));
  if (format == RooflineFormat::csv) return csv_table(rows);
  return Json{{"points", rows}}.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace ridge
