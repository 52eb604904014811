#include "report/npu_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/units.h"

namespace ridge {
namespace {

using sim::NpuObjectKind;
using Json = nlohmann::ordered_json;

double per_second(double seconds) { return seconds > 0 ? 1 / seconds : 0; }

// The parts of energy by their names in JSON and in text.
struct Part {
  const char *key, *label;
  double sim::NpuEnergy::*joules;
};
constexpr Part kParts[] = {
    {"macs", "MACs", &sim::NpuEnergy::macs},
    {"registers", "registers", &sim::NpuEnergy::registers},
    {"local_sram", "local SRAM", &sim::NpuEnergy::local},
    {"shared_sram", "shared SRAM", &sim::NpuEnergy::shared},
    {"dram", "DRAM", &sim::NpuEnergy::dram},
    {"row_activations", "row activations", &sim::NpuEnergy::rows},
    {"leakage", "leakage", &sim::NpuEnergy::leakage},
};

constexpr std::pair<NpuObjectKind, const char*> kKinds[] = {
    {NpuObjectKind::weights, "weights"}, {NpuObjectKind::kv, "KV cache"}, {NpuObjectKind::rows, "rows and norms"}};

sim::NpuHome home_of(const NpuReport& report, const sim::NpuRun& run, NpuObjectKind kind) {
  sim::NpuHome sum;
  for (size_t i = 0; i < run.homes.size(); ++i) {
    if (report.work->objects[i].kind != kind) continue;
    sum.local += run.homes[i].local;
    sum.shared += run.homes[i].shared;
    sum.dram += run.homes[i].dram;
  }
  return sum;
}

// Five significant characters: from nanojoules to joules of one pass.
std::string millijoules(double joules) { return fmt::format("{:.4g}", joules * 1e3); }

std::string head(const NpuReport& report) {
  const sim::NpuMachine& m = *report.machine;
  std::string text =
      fmt::format("{} on {}, {}", report.input, m.name, counted(report.work->pass_begins.size(), "pass", "passes"));
  if (report.positions > 0) text += fmt::format(", {} in the cache", counted(report.positions, "position"));
  text += fmt::format(
      "\nweights {}, KV cache {}; {} of SRAM keep what is worth most {} in pieces of {}: C/W {:.1f} %\n",
      format_bytes(report.work->bytes(NpuObjectKind::weights)), format_bytes(report.work->bytes(NpuObjectKind::kv)),
      format_bytes(report.rows.back().run.room_bytes), report.worth == sim::NpuWorth::energy ? "energy" : "time",
      format_bytes(report.rows.back().run.grain_bytes), report.pinned_at_most() * 100);
  if (!report.work->counted_macs) text += "a trace counts no operations: one multiply-add a byte stands in\n";
  return text + "\n";
}

}  // namespace

double NpuReport::pinned_at_most() const {
  const double all = static_cast<double>(work->bytes(NpuObjectKind::weights) + work->bytes(NpuObjectKind::kv));
  return all > 0 ? std::min(1.0, static_cast<double>(rows.back().run.room_bytes) / all) : 0;
}

std::string npu_text(const NpuReport& report) {
  std::string text = head(report);
  text += fmt::format("{:<13} {:>10} {:>9} {:>10} {:>7} {:>10}  {}\n", "", "ms/pass", "pass/s", "DRAM", "hits", "mJ",
                      "binds");
  for (const NpuRow& row : report.rows) {
    const sim::NpuRun& r = row.run;
    text += fmt::format("{:<13} {:>10.4g} {:>9.4g} {:>10} {:>6.1f}% {:>10}  {}\n", row.name, r.pass_s * 1e3,
                        per_second(r.pass_s), format_bytes(static_cast<uint64_t>(r.dram_bytes + 0.5)),
                        r.hit_ratio() * 100, millijoules(r.energy.total()), r.bound());
  }
  const NpuRow& last = report.rows.back();
  const sim::NpuRun& run = last.run;
  text += fmt::format("\n{}, mJ of a pass:", last.name);
  for (const Part& p : kParts) {
    const char* before = &p == kParts ? " " : p.joules == &sim::NpuEnergy::dram ? ",\n  " : ", ";
    text += fmt::format("{}{} {}", before, p.label, millijoules(run.energy.*p.joules));
  }
  text += fmt::format("\nms of a pass: MACs {:.4g}, inner SRAM {:.4g}, shared SRAM {:.4g}, DRAM {:.4g}, waits {:.4g}\n",
                      run.busy.macs * 1e3, run.busy.inner_sram * 1e3, run.busy.shared_sram * 1e3, run.busy.dram * 1e3,
                      run.waited_s * 1e3);
  for (const auto& [kind, label] : kKinds) {
    if (report.work->bytes(kind) == 0) continue;
    const sim::NpuHome home = home_of(report, run, kind);
    text += fmt::format("{}: local SRAM {}, shared SRAM {}, DRAM {}\n", label, format_bytes(home.local),
                        format_bytes(home.shared), format_bytes(home.dram));
  }
  std::array<size_t, 3> by_status{};
  for (const sim::NpuFigure& f : report.machine->figures) ++by_status[static_cast<size_t>(f.status)];
  return text + fmt::format("the machine: {} published, {} measured, {} assumed; --json has their sources\n",
                            counted(by_status[0], "figure"), by_status[1], by_status[2]);
}

namespace {

Json row_json(const NpuRow& row) {
  const sim::NpuRun& r = row.run;
  Json j = {{"policy", row.name},
            {"about", row.about},
            {"pass_s", r.pass_s},
            {"passes_per_s", per_second(r.pass_s)},
            {"waited_s", r.waited_s},
            {"bound_s", r.bound_s()},
            {"binds", r.bound()},
            {"dram_bytes", r.dram_bytes},
            {"visited_bytes", r.visited_bytes},
            {"hit_bytes", r.hit_bytes},
            {"hit_ratio", r.hit_ratio()},
            {"row_activations", r.row_opens}};
  j["busy_s"] = {{"macs", r.busy.macs},
                 {"inner_sram", r.busy.inner_sram},
                 {"shared_sram", r.busy.shared_sram},
                 {"dram", r.busy.dram}};
  j["energy_j"] = {{"total", r.energy.total()}};
  for (const Part& p : kParts) j["energy_j"][p.key] = r.energy.*p.joules;
  return j;
}

Json placement_json(const NpuReport& report) {
  Json list = Json::array();
  const sim::NpuRun& run = report.rows.back().run;
  for (size_t i = 0; i < run.homes.size(); ++i) {
    const sim::NpuObject& object = report.work->objects[i];
    if (object.bytes == 0) continue;
    list.push_back({{"name", object.name},
                    {"bytes", object.bytes},
                    {"local_sram", run.homes[i].local},
                    {"shared_sram", run.homes[i].shared},
                    {"dram", run.homes[i].dram}});
  }
  return list;
}

}  // namespace

Json npu_json(const NpuReport& report) {
  const sim::NpuMachine& m = *report.machine;
  Json j = {{"input", report.input},
            {"machine", m.name},
            {"passes", report.work->pass_begins.size()},
            {"positions", report.positions},
            {"counted_operations", report.work->counted_macs},
            {"weights_bytes", report.work->bytes(NpuObjectKind::weights)},
            {"kv_bytes", report.work->bytes(NpuObjectKind::kv)},
            {"sram_room_bytes", report.rows.back().run.room_bytes},
            {"pinned_at_most", report.pinned_at_most()},
            {"worth", report.worth == sim::NpuWorth::energy ? "energy" : "seconds"},
            {"grain_bytes", report.rows.back().run.grain_bytes}};
  j["rows"] = Json::array();
  for (const NpuRow& row : report.rows) j["rows"].push_back(row_json(row));
  j["placement_policy"] = report.rows.back().name;
  j["placement"] = placement_json(report);
  j["figures"] = Json::array();
  for (const sim::NpuFigure& f : m.figures) {
    j["figures"].push_back({{"where", f.where},
                            {"what", f.what},
                            {"value", f.value},
                            {"status", name_of(f.status)},
                            {"source", f.source}});
  }
  return j;
}

}  // namespace ridge
