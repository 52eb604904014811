#include "report/sim_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/units.h"

namespace ridge {
namespace {

double per_second(double seconds) { return seconds > 0 ? 1 / seconds : 0; }

uint64_t whole_bytes(double bytes) { return static_cast<uint64_t>(bytes + 0.5); }

}  // namespace

std::string host_table(const HostReport& report) {
  const sim::StorageQueue& q = report.host.storage;
  std::string text = fmt::format(
      "{} on {}, {}, budget {}\n"
      "weights {}, pinned {}, {} of {}; bound {:.1f} ms\n"
      "panels {:.1f} GB/s, rows {:.1f} GB/s; storage {:.2f} GB/s, {:.0f} µs a request and {:.0f} µs latency, {} of "
      "{}\n\n",
      report.input, report.machine, counted(static_cast<uint64_t>(report.threads), "thread"),
      format_bytes(report.budget), format_bytes(report.weights), format_bytes(report.pinned),
      counted(report.slots, "slot"), format_bytes(report.slot_bytes), report.bound_s * 1e3,
      report.host.panel_bytes_per_s / 1e9, report.host.row_bytes_per_s / 1e9, q.bytes_per_s / 1e9, q.request_s * 1e6,
      q.latency_s * 1e6, q.depth, format_bytes(q.request_bytes));
  text += fmt::format("{:<20} {:>8} {:>9} {:>9} {:>10} {:>6}\n", "", "tok/s", "ms/pass", "waits ms", "read", "hits");
  for (const HostRow& row : report.rows) {
    text += fmt::format("{:<20} {:>8.2f} {:>9.2f} {:>9.2f} {:>10} {:>5.1f}%  {}\n", row.name,
                        per_second(row.run.pass_s), row.run.pass_s * 1e3, row.run.waited_s * 1e3,
                        format_bytes(whole_bytes(row.run.read_bytes)), row.run.hit_ratio * 100, row.about);
  }
  return text;
}

nlohmann::ordered_json host_json(const HostReport& report) {
  nlohmann::ordered_json j = {
      {"input", report.input},         {"machine", report.machine},       {"threads", report.threads},
      {"budget_bytes", report.budget}, {"weights_bytes", report.weights}, {"pinned_bytes", report.pinned},
      {"slots", report.slots},         {"slot_bytes", report.slot_bytes}, {"policy_capacity_bytes", report.capacity},
      {"bound_s", report.bound_s}};
  const sim::HostMachine& host = report.host;
  j["model"] = {{"panel_bytes_per_s", host.panel_bytes_per_s},
                {"row_bytes_per_s", host.row_bytes_per_s},
                {"visit_s", host.visit_s},
                {"streamed_visit_s", host.streamed_visit_s},
                {"pass_s", host.pass_s},
                {"storage_bytes_per_s", host.storage.bytes_per_s},
                {"storage_request_s", host.storage.request_s},
                {"storage_latency_s", host.storage.latency_s}};
  j["rows"] = nlohmann::ordered_json::array();
  for (const HostRow& row : report.rows) {
    j["rows"].push_back({{"policy", row.name},
                         {"about", row.about},
                         {"tokens_per_s", per_second(row.run.pass_s)},
                         {"pass_s", row.run.pass_s},
                         {"waited_s", row.run.waited_s},
                         {"read_bytes", whole_bytes(row.run.read_bytes)},
                         {"visited_bytes", whole_bytes(row.run.visited_bytes)},
                         {"hit_ratio", row.run.hit_ratio}});
  }
  return j;
}

std::optional<double> gap_closed(const ReplayReport& report, const ReplayRow& row) {
  std::optional<double> classic, ideal;
  for (const ReplayRow& r : report.rows) {
    std::optional<double>& best = r.kind == sim::PolicyKind::ideal ? ideal : classic;
    if (r.kind != sim::PolicyKind::learned) best = std::max(best.value_or(0), r.stats.saved_size());
  }
  if (row.kind != sim::PolicyKind::learned || !classic || !ideal || *ideal <= *classic) return std::nullopt;
  return (row.stats.saved_size() - *classic) / (*ideal - *classic);
}

std::string replay_table(const ReplayReport& report) {
  std::string text = fmt::format("{}{}: {} of {} in {}; the cache holds {}\n{}\n", report.input,
                                 report.model.empty() ? "" : " (" + report.model + ")",
                                 counted(report.accesses, "visit"), counted(report.distinct, "block"),
                                 counted(report.passes, "pass", "passes"), format_bytes(report.capacity),
                                 report.train.empty() ? "" : "pins and parameters from " + report.train + "\n");
  text += fmt::format("{:<17} {:>10} {:>7} {:>10} {:>10} {:>8}\n", "", "hits", "", "of bytes", "read ahead", "of gap");
  for (const ReplayRow& row : report.rows) {
    const std::optional<double> gap = gap_closed(report, row);
    const double ahead =
        row.stats.size == 0 ? 0 : static_cast<double>(row.stats.ahead_size) / static_cast<double>(row.stats.size) * 100;
    text += fmt::format("{:<17} {:>10} {:>6.1f}% {:>9.1f}% {:>10} {:>8}  {}\n", row.name, format_count(row.stats.hits),
                        row.stats.hit_ratio() * 100, row.stats.hit_size_ratio() * 100,
                        ahead > 0 ? fmt::format("{:.1f}%", ahead) : "-", gap ? fmt::format("{:.1f}%", *gap * 100) : "-",
                        row.about);
  }
  return text;
}

nlohmann::ordered_json replay_json(const ReplayReport& report) {
  nlohmann::ordered_json j = {{"input", report.input},     {"model", report.model},
                              {"visits", report.accesses}, {"blocks", report.distinct},
                              {"passes", report.passes},   {"capacity_bytes", report.capacity}};
  if (!report.train.empty()) j["train"] = report.train;
  j["rows"] = nlohmann::ordered_json::array();
  for (const ReplayRow& row : report.rows) {
    const std::optional<double> gap = gap_closed(report, row);
    j["rows"].push_back({{"policy", row.name},
                         {"about", row.about},
                         {"hits", row.stats.hits},
                         {"hit_ratio", row.stats.hit_ratio()},
                         {"hit_bytes", row.stats.hit_size},
                         {"hit_bytes_ratio", row.stats.hit_size_ratio()},
                         {"read_ahead_bytes", row.stats.ahead_size}});
    if (gap) j["rows"].back()["gap_closed"] = *gap;
  }
  return j;
}

}  // namespace ridge
