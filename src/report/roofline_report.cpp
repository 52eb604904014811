#include "report/roofline_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "report/csv.h"
#include "report/paper_report.h"

namespace ridge {
namespace {

using Json = nlohmann::ordered_json;

Json number_or_null(double value) { return value > 0 ? Json(value) : Json(nullptr); }

std::string csv(const RooflineReport& report) {
  std::vector<Json> rows;
  for (const RooflinePoint& p : report.points) rows.push_back(roofline_row(p));
  return csv_table(rows);
}

std::string percent(double share) { return fmt::format("{:.0f} %", share * 100); }

std::string table_row(const RooflinePoint& p) {
  const bool whole = p.op == "all";
  std::string text = fmt::format("{:<11}{:>10}{:>7}", whole ? std::string(name_of(p.phase)) : "  " + p.op,
                                 whole ? roofline_figure(p.tokens_per_s()) : "", percent(p.share));
  if (p.placed.roof == Roof::none) return text + "\n";
  const Placed& at = p.placed;
  text += fmt::format("{:>9}{:>9}{:>8}  {:<7}{:>6}{:>7}{:>7}{:>7}{:>7}{}\n", roofline_figure(at.oi),
                      roofline_figure(at.ops_per_s * 1e-9), roofline_figure(at.bytes_per_s * 1e-9),
                      at.roof == Roof::memory ? p.level : std::string(name_of(at.roof)), percent(at.eta),
                      percent(at.mbu), percent(at.mfu), fmt::format("{:.2f}", at.phi),
                      fmt::format("{:.2f}", at.phi_normalised), p.above ? " !" : "");
  return text;
}

std::string table(const RooflineReport& report) {
  std::string text;
  if (!report.machine.isa.empty()) {
    text = fmt::format("{}, kernels: {}\n", printable(report.machine.cpu), report.machine.isa);
  }
  std::string last, contention, roofs;
  bool above = false;
  for (const RooflinePoint& p : report.points) {
    std::string title = fmt::format(
        "{}, {}: {} tokens in, {} out; {}", printable(p.model), p.scenario, p.prompt, p.answer,
        p.measured ? fmt::format("{} thread{}", p.threads, p.threads == 1 ? "" : "s") : printable(p.machine));
    if (title != last) {
      text += fmt::format("\n{}\n{:<11}{:>10}{:>7}{:>9}{:>9}{:>8}  {:<7}{:>6}{:>7}{:>7}{:>7}{:>7}\n", title, "",
                          "tok/s", "time", "op/byte", "Gop/s", "GB/s", "roof", "eta", "MBU", "MFU", "phi", "phi n");
      last = title;
    }
    text += table_row(p);
    above = above || p.above;
    if (contention.empty()) contention = p.contention;
  }
  text += "\n";
  std::vector<std::string> said;
  for (const RooflinePoint& p : report.points) {
    if (p.op != "all" && !p.above) continue;
    std::string line =
        fmt::format("{}{}: {}.\n", printable(p.model), p.measured ? "" : " on " + printable(p.machine), p.sentence);
    if (std::find(said.begin(), said.end(), line) == said.end()) text += line;
    said.push_back(line);
  }
  for (const std::string& note : report.notes) text += printable(note) + "\n";
  text += compat_table(report);
  if (above) text += "! above the upper limit of its roof\n";
  if (!contention.empty()) text += fmt::format("contended while measured: {}\n", contention);
  return text;
}

std::string dump(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

}  // namespace

std::string roofline_figure(double value, const char* none) {
  if (value <= 0) return none;
  return fmt::format("{:.{}f}", value, value >= 100 ? 0 : value >= 10 ? 1 : 2);
}

nlohmann::ordered_json roofline_row(const RooflinePoint& p) {
  const bool placed = p.placed.roof != Roof::none;
  auto if_placed = [&](double value) { return placed ? Json(value) : Json(nullptr); };
  return {{"model", p.model},
          {"scenario", p.scenario},
          {"phase", name_of(p.phase)},
          {"operator", p.op},
          {"oi", if_placed(p.placed.oi)},
          {"flops_per_s", p.seconds > 0 ? Json(p.work.ops() / p.seconds) : Json(nullptr)},
          {"bytes_per_s", p.seconds > 0 ? Json(p.work.bytes() / p.seconds) : Json(nullptr)},
          {"roof", name_of(p.placed.roof)},
          {"eta", if_placed(p.placed.eta)},
          {"phi", if_placed(p.placed.phi)},
          {"phi_normalised", if_placed(p.placed.phi_normalised)},
          {"mbu", if_placed(p.placed.mbu)},
          {"mfu", if_placed(p.placed.mfu)},
          {"above_roof", p.above.has_value()},
          {"limit_flops_per_s", p.above ? Json(p.above->limit_ops_per_s) : Json(nullptr)},
          {"machine", p.machine},
          {"measured", p.measured},
          {"threads", p.threads},
          {"prompt", p.prompt},
          {"answer", p.answer},
          {"tokens", p.tokens},
          {"depth", p.depth},
          {"passes", p.passes},
          {"tokens_per_s", number_or_null(p.tokens_per_s())},
          {"seconds", p.seconds},
          {"seconds_low", p.seconds_low},
          {"seconds_high", p.seconds_high},
          {"coverage", p.coverage},
          {"share", p.share},
          {"bound_seconds", p.bound_s},
          {"residual_seconds", p.seconds - p.bound_s},
          {"flops", p.work.cost.flops},
          {"int_ops", p.work.cost.int_ops},
          {"weight_bytes", p.work.cost.memory_bytes},
          {"kv_bytes", p.work.cost.kv_bytes},
          {"activation_bytes", p.work.cost.activation_bytes},
          {"streamed_bytes", p.work.streamed_bytes},
          {"footprint_bytes", p.footprint_bytes},
          {"level", p.level},
          {"peak_flops_per_s", if_placed(p.placed.peak)},
          {"ridge_oi", if_placed(p.placed.ridge)},
          {"roof_flops_per_s", if_placed(p.placed.roof_ops_per_s)},
          {"read_roof_gb_per_s", number_or_null(p.roofs.read_gb_per_s)},
          {"storage_roof_gb_per_s", number_or_null(p.roofs.storage_gb_per_s)},
          {"format_roof_gb_per_s", number_or_null(p.roofs.format_gb_per_s)},
          {"int8_peak_gop_per_s", number_or_null(p.roofs.int8_gops)},
          {"float_peak_gop_per_s", number_or_null(p.roofs.float_gops)},
          {"contended", !p.contention.empty()},
          {"contention", p.contention},
          {"sentence", p.sentence}};
}

nlohmann::ordered_json roofline_json(const RooflineReport& report) {
  Json models = Json::array(), points = Json::array();
  for (const RooflineModel& m : report.models) {
    models.push_back(
        {{"name", m.name}, {"architecture", m.architecture}, {"path", m.path}, {"weight_bytes", m.weight_bytes}});
  }
  for (const RooflinePoint& p : report.points) {
    Json row = roofline_row(p);
    if (!p.samples.empty()) row["samples_s"] = p.samples;
    if (p.experts_saved_bytes) {
      row["expected_weight_bytes"] = static_cast<double>(p.work.cost.memory_bytes) + *p.experts_saved_bytes;
    }
    points.push_back(std::move(row));
  }
  Json json = {{"machine",
                {{"cpu", report.machine.cpu},
                 {"isa", report.machine.isa},
                 {"cpus", report.machine.cpus},
                 {"measured_at", report.machine.measured_at}}},
               {"version", report.version},
               {"label", report.label},
               {"numerics", report.numerics},
               {"kv_type", report.kv_type},
               {"memory_budget", report.memory_budget},
               {"models", models},
               {"notes", report.notes},
               {"points", points}};
  if (!report.compat.empty()) json["paper_compat"] = compat_json(report);
  return json;
}

std::string roofline_text(const RooflineReport& report, RooflineFormat format) {
  switch (format) {
    case RooflineFormat::json:
      return dump(roofline_json(report));
    case RooflineFormat::csv:
      return csv(report);
    case RooflineFormat::table:
      return table(report);
  }
  return {};
}

}  // namespace ridge
