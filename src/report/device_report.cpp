#include "report/device_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/units.h"

namespace ridge {
namespace {

using sim::StudyRow;
using sim::StudyRun;

// Counts without decimals, GiB and seconds with as many as the documents give.
std::string figure(double value, const std::string& unit) {
  if (unit.empty()) return format_count(static_cast<uint64_t>(std::llround(value)));
  if (unit == "GiB") return fmt::format("{:.1f}", value);
  return std::abs(value) >= 1000 ? fmt::format("{:.2f}", value) : fmt::format("{:.1f}", value);
}

std::string document_table(const std::vector<StudyRow>& rows) {
  std::string text = fmt::format("{:<42} {:>9} {:>10}\n", "", "computed", "published");
  for (const StudyRow& row : rows) {
    const std::string what = row.unit.empty() ? row.what : row.what + ", " + row.unit;
    text +=
        fmt::format("{:<42} {:>9} {:>10}{}\n", what, figure(row.computed, row.unit),
                    row.published ? figure(*row.published, row.unit) : "–", row.note.empty() ? "" : "  " + row.note);
  }
  return text;
}

std::string run_line(const StudyRun& run) {
  const std::string width = run.interval_mib ? fmt::format(" ± {:.0f}", *run.interval_mib) : "";
  return fmt::format("  {:<58} {:>8.1f} {:>7.1f} {:>6.1f} {:>7.0f}{:<7} {}\n", run.what, run.image_s, run.saved_s,
                     run.waited_s, run.added_mib, width, run.passes_gate ? "passes" : "fails");
}

const std::string kRunHead =
    fmt::format("{:<60} {:>8} {:>7} {:>6} {:>7}        {}\n", "", "s/image", "saved", "waits", "MiB", "gate");

nlohmann::ordered_json run_json_of(const StudyRun& run) {
  nlohmann::ordered_json j = {{"group", run.group},
                              {"what", run.what},
                              {"seconds_per_image", run.image_s},
                              {"saved_s", run.saved_s},
                              {"waited_s", run.waited_s},
                              {"added_mib", run.added_mib},
                              {"hit_ratio", run.hit_ratio},
                              {"passes_gate", run.passes_gate},
                              {"policy", run.options.policy},
                              {"contexts", run.options.contexts},
                              {"images", run.options.images}};
  j["interval_mib"] = run.interval_mib ? nlohmann::ordered_json(*run.interval_mib) : nlohmann::ordered_json();
  return j;
}

std::string gate_words(double gate_mib) {
  return fmt::format("gate: {:.0f} MiB of added memory, where swap reached its limit on the ladder", gate_mib);
}

}  // namespace

std::string study_table(const sim::ContextDevice& device, const sim::DeviceStudy& study) {
  std::string text = fmt::format("{}\n\n{}\n", device.name, document_table(study.document));
  if (study.device.contexts.size() != device.contexts.size()) {
    text += fmt::format("{} merged into {}: {:.3f} s of each lifecycle are taken not to depend on size\n",
                        counted(device.contexts.size(), "context"), study.device.contexts.size(), study.fixed_s);
  }
  text += kRunHead;
  std::string group;
  for (const StudyRun& run : study.runs) {
    if (run.group != group) text += run.group + "\n";
    group = run.group;
    text += run_line(run);
  }
  const sim::LadderFit& fit = study.fit;
  text +=
      fmt::format("\nbound without pins: {:.1f} s per image; {:.1f} s if the driver cannot initialise while it runs\n",
                  study.bound_s, study.locked_bound_s);
  text += fmt::format("memory by fit: {:.0f} MiB + {:.0f} per context + {:.2f} per MiB of weights (rungs ± {:.0f})\n",
                      fit.base_mib, fit.per_context_mib, fit.per_weight_mib, fit.residual_mib);
  return text + gate_words(study.gate_mib) + "\n";
}

nlohmann::ordered_json study_json(const sim::ContextDevice& device, const sim::DeviceStudy& study) {
  nlohmann::ordered_json j = {{"device", device.name},
                              {"contexts", device.contexts.size()},
                              {"simulated_contexts", study.device.contexts.size()},
                              {"fixed_lifecycle_s", study.fixed_s}};
  j["document"] = nlohmann::ordered_json::array();
  for (const StudyRow& row : study.document) {
    nlohmann::ordered_json line = {{"what", row.what}, {"unit", row.unit}, {"computed", row.computed}};
    line["published"] = row.published ? nlohmann::ordered_json(*row.published) : nlohmann::ordered_json();
    line["note"] = row.note;
    j["document"].push_back(line);
  }
  j["runs"] = nlohmann::ordered_json::array();
  for (const StudyRun& run : study.runs) j["runs"].push_back(run_json_of(run));
  j["bound_s"] = study.bound_s;
  j["locked_bound_s"] = study.locked_bound_s;
  j["gate_mib"] = study.gate_mib;
  j["memory_fit"] = {{"base_mib", study.fit.base_mib},
                     {"per_context_mib", study.fit.per_context_mib},
                     {"per_weight_mib", study.fit.per_weight_mib},
                     {"residual_mib", study.fit.residual_mib},
                     {"points", study.fit.points}};
  return j;
}

std::string device_plan_table(const sim::ContextDevice& device, const sim::DevicePlan& plan) {
  std::string text = fmt::format("{}\n\n", device.name);
  for (const std::string& reason : plan.reasons) text += "- " + reason + "\n";
  if (!plan.pinned.empty()) {
    text += "\npinned:";
    size_t column = 7;
    for (const std::string& name : plan.pinned) {
      const bool wraps = column + 1 + name.size() > 100;
      if (wraps) column = 0;
      text += (wraps ? "\n  " : " ") + name;
      column += 1 + name.size();
    }
    text += "\n";
  }
  text += "\n" + kRunHead;
  for (const StudyRun& run : plan.considered) text += run_line(run);
  return text;
}

nlohmann::ordered_json device_plan_json(const sim::ContextDevice& device, const sim::DevicePlan& plan) {
  nlohmann::ordered_json j = {
      {"device", device.name}, {"budget_mib", plan.budget_mib}, {"best", run_json_of(plan.best)}};
  j["pinned"] = plan.pinned;
  j["reasons"] = plan.reasons;
  j["considered"] = nlohmann::ordered_json::array();
  for (const StudyRun& run : plan.considered) j["considered"].push_back(run_json_of(run));
  return j;
}

}  // namespace ridge
