#include "report/task_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/seconds.h"
#include "base/units.h"

namespace ridge {
namespace {

std::string name_of(const TaskTable& table, std::optional<size_t> task) {
  return task ? table.names[*task] : "all tasks";
}

}  // namespace

std::string switch_words(const TaskTable& table, const TaskSwitch& change) {
  return fmt::format("task {} → {} {} pass {}: pins read again: {} over {}, {}", name_of(table, change.from),
                     name_of(table, change.to), change.foretold ? "foretold before" : "at", change.pass,
                     format_bytes(change.bytes), counted(change.passes, "pass", "passes"),
                     change.done ? fmt::format("{:.1f} ms", seconds(change.time) * 1e3) : "not done");
}

std::string task_words(const Engine& engine) {
  const TaskStats& stats = *engine.task_stats();
  const TaskTable& table = *engine.task_table();
  std::string text = fmt::format("trained for {}, {} pinned; {}", name_of(table, stats.switches.back().to),
                                 counted(stats.pinned, "block"), counted(stats.changes, "change") + " of the task");
  if (stats.changes > 0) text += "; the last: " + switch_words(table, stats.switches.back());
  return text;
}

nlohmann::ordered_json task_json(const Engine& engine) {
  if (engine.task_stats() == nullptr) return nullptr;
  const TaskStats& stats = *engine.task_stats();
  const TaskTable& table = *engine.task_table();
  auto name = [&](std::optional<size_t> task) -> nlohmann::ordered_json {
    return task ? nlohmann::ordered_json(table.names[*task]) : nlohmann::ordered_json();
  };
  nlohmann::ordered_json switches = nlohmann::ordered_json::array();
  for (const TaskSwitch& s : stats.switches) {
    switches.push_back({{"pass", s.pass},
                        {"from", name(s.from)},
                        {"to", name(s.to)},
                        {"foretold", s.foretold},
                        {"passes", s.passes},
                        {"bytes", s.bytes},
                        {"repin_s", seconds(s.time)},
                        {"done", s.done}});
  }
  return {{"task", name(stats.switches.back().to)},
          {"pinned_blocks", stats.pinned},
          {"changes", stats.changes},
          {"switches", switches}};
}

}  // namespace ridge
