#include "report/kernel_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/units.h"

namespace ridge {
namespace {

using Json = nlohmann::ordered_json;

// Words with spaces between them, broken before column 80 and indented.
std::string wrapped(const std::vector<std::string>& words, size_t indent) {
  constexpr size_t kWidth = 80;
  std::string text(indent, ' ');
  size_t column = indent;
  for (const std::string& word : words) {
    if (column > indent && column + 1 + word.size() > kWidth) {
      text += "\n" + std::string(indent, ' ');
      column = indent;
    }
    text += (column > indent ? " " : "") + word;
    column += word.size() + (column > indent ? 1 : 0);
  }
  return text + "\n";
}

std::string speeds(const KernelRow& row) {
  if (!row.measured) return {};
  auto percent = [](double share) { return share > 0 ? fmt::format("{:.0f} %", share * 100) : "-"; };
  return fmt::format("{:>9.1f}{:>8}{:>10.1f}{:>8}", row.decode_gb_per_s, percent(row.decode_share),
                     row.prefill_gop_per_s, percent(row.prefill_share));
}

std::string heading(const char* first, int width) {
  return fmt::format("{:<{}}{:<18}{:>9}{:>8}{:>10}{:>8}\n", first, width, "kernel", "GB/s", "of read", "Gop/s",
                     "of peak");
}

std::string head(const KernelReport& report) {
  std::string text = report.cpu + "\n" + wrapped(report.features, 2);
  text += fmt::format("roofs of one thread: reads {:.1f} GB/s ({}), int8 {:.0f} Gop/s, f32 {:.0f} Gop/s\n\n",
                      report.read_roof_gb_per_s, format_bytes(report.footprint_bytes), report.int8_peak_gop_per_s,
                      report.float_peak_gop_per_s);
  return text;
}

// What else runs, by the variant that was chosen.
std::string other_operations(const KernelReport& report) {
  std::map<std::string, std::vector<std::string>> by_name;
  for (const KernelRow& row : report.rows) {
    if (!row.chosen || row.op == Op::matmul_q8 || row.op == Op::matmul_float) continue;
    std::vector<std::string>& names = by_name[row.name];
    if (std::find(names.begin(), names.end(), name_of(row.op)) == names.end()) names.emplace_back(name_of(row.op));
  }
  std::string text;
  for (const auto& [name, operations] : by_name) text += name + "\n" + wrapped(operations, 2);
  return text;
}

// Each reason once, with how many choices it stands behind.
std::string refusals(const KernelReport& report) {
  std::map<std::string, int> counts;
  for (const KernelRow& row : report.rows) {
    size_t at = 0;
    while (at < row.refusals.size()) {
      size_t end = std::min(row.refusals.find("; ", at), row.refusals.size());
      ++counts[row.refusals.substr(at, end - at)];
      at = end + 2;
    }
  }
  if (counts.empty()) return "the best kernel of every operation runs here\n";
  std::string text = "passed over\n";
  for (const auto& [reason, count] : counts) text += fmt::format("  {} ({})\n", reason, count);
  return text;
}

}  // namespace

std::string kernel_table(const KernelReport& report, KernelScope scope) {
  std::string text = head(report);
  if (scope == KernelScope::all) {
    text += heading("operation", 22);
    for (const KernelRow& row : report.rows) {
      const char* mark = row.chosen ? " *" : row.runs_here ? "" : " -";
      text += fmt::format("{:<22}{:<18}{}\n", describe(row.op, row.type), row.name + mark, speeds(row));
    }
    return text + "\n* chosen   - does not run here\n" + refusals(report);
  }
  text += heading("type", 10);
  for (const KernelRow& row : report.rows) {
    bool own = type_info(row.type).is_float == (row.op == Op::matmul_float);
    if (!row.chosen || !own || (row.op != Op::matmul_q8 && row.op != Op::matmul_float)) continue;
    text += fmt::format("{:<10}{:<18}{}\n", type_info(row.type).name, row.name, speeds(row));
  }
  text += "\nother operations\n" + other_operations(report) + refusals(report);
  return report.interrupted ? text + "stopped by Ctrl-C: some are not measured\n" : text;
}

nlohmann::ordered_json kernel_json(const KernelReport& report) {
  Json kernels = Json::array();
  for (const KernelRow& row : report.rows) {
    Json kernel = {{"op", name_of(row.op)},
                   {"type", depends_on_type(row.op) ? Json(type_info(row.type).name) : Json(nullptr)},
                   {"isa", name_of(row.isa)},
                   {"name", row.name},
                   {"chosen", row.chosen},
                   {"runs_here", row.runs_here},
                   {"passed_over", row.refusals}};
    if (row.measured) {
      kernel["decode_gb_per_s"] = row.decode_gb_per_s;
      kernel["read_roof_share"] = row.decode_share;
      kernel["prefill_gop_per_s"] = row.prefill_gop_per_s;
      kernel["peak_share"] = row.prefill_share;
    }
    kernels.push_back(std::move(kernel));
  }
  return {{"machine", {{"cpu", report.cpu}, {"features", report.features}}},
          {"footprint_bytes", report.footprint_bytes},
          {"read_roof_gb_per_s", report.read_roof_gb_per_s},
          {"int8_peak_gop_per_s", report.int8_peak_gop_per_s},
          {"float_peak_gop_per_s", report.float_peak_gop_per_s},
          {"kernels", kernels}};
}

}  // namespace ridge
