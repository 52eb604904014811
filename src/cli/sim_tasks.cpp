// ridge sim --map: a cache that a map trains, on traces of several tasks.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>

#include "analyze/importance_map.h"
#include "base/units.h"
#include "cli/sim.h"
#include "report/task_study_report.h"
#include "sim/recorded_trace.h"
#include "sim/task_study.h"

namespace ridge::cli {
namespace {

// "blk.3.ffn.17/0": layer and number of an expert or a bundle.
std::optional<std::pair<uint32_t, uint32_t>> place_of(const std::string& name) {
  uint32_t layer = 0, index = 0;
  const char* end = name.data() + name.size();
  if (!name.starts_with("blk.")) return std::nullopt;
  const auto [dot, bad_layer] = std::from_chars(name.data() + 4, end, layer);
  constexpr std::string_view kPart = ".ffn.";
  if (bad_layer != std::errc() || !std::string_view(dot, end).starts_with(kPart)) return std::nullopt;
  const auto [slash, bad_index] = std::from_chars(dot + kPart.size(), end, index);
  if (bad_index != std::errc() || slash == end || *slash != '/') return std::nullopt;
  return std::pair(layer, index);
}

Result<TaskTable> table_of(const ImportanceMap& map, const std::string& map_path, const sim::RecordedTrace& trace,
                           const std::string& trace_path) {
  std::map<std::pair<uint32_t, uint32_t>, const MapBlock*> known;
  for (const MapBlock& b : map.blocks) {
    if (b.kind == MapKind::expert || b.kind == MapKind::neurons) known[{b.layer, b.index}] = &b;
  }
  TaskTable table;
  for (const MapTask& task : map.tasks) {
    table.names.push_back(task.name);
    table.tokens.push_back(task.tokens);
  }
  table.touch.assign(map.tasks.size(), std::vector<float>(trace.blocks.size(), 0));
  size_t found = 0, asked = 0;
  for (size_t b = 0; b < trace.blocks.size(); ++b) {
    const auto place = place_of(trace.blocks[b].name);
    if (!place) continue;
    ++asked;
    const auto at = known.find(*place);
    if (at == known.end()) continue;
    ++found;
    for (size_t t = 0; t < map.tasks.size(); ++t) table.touch[t][b] = static_cast<float>(at->second->touch[t]);
  }
  if (found == 0 || found != asked)
    return bad_input(
        fmt::format("{}: tells of {} of the {} experts or bundles of {}: make the map of the same model, with "
                    "--neurons as its pack has them",
                    map_path, found, asked, trace_path));
  table.fill_mean();
  return table;
}

Result<size_t> task_of(const TaskTable& table, const std::string& name, const std::string& map_path) {
  const auto found = std::find(table.names.begin(), table.names.end(), name);
  if (found != table.names.end()) return static_cast<size_t>(found - table.names.begin());
  return usage_error(fmt::format("task '{}' is not in {}: it has {}", name, map_path, fmt::join(table.names, ", ")));
}

bool same_blocks(const sim::RecordedTrace& a, const sim::RecordedTrace& b) {
  return std::equal(a.blocks.begin(), a.blocks.end(), b.blocks.begin(), b.blocks.end(),
                    [](const auto& x, const auto& y) { return x.name == y.name && x.memory_bytes == y.memory_bytes; });
}

}  // namespace

Result<void> sim_tasks(const SimFlags& flags) {
  const std::string& first = flags.engine.model;
  if (!first.ends_with(".json"))
    return usage_error(fmt::format("--map needs a trace that `ridge run --record` wrote, and {} is none", first));
  if (!flags.task) return usage_error("--task is missing: the task of the map that the trace is of");
  if (!flags.engine.memory) return usage_error("--memory is missing: how much the cache holds, such as 64M");
  if (flags.policy || flags.train || flags.trace || flags.export_path || flags.machine)
    return usage_error("--policy, --train, --trace, --export and --machine are not for --map: leave them out");
  constexpr int64_t kMostPasses = 1 << 20;
  const int64_t turn = flags.turn.value_or(32);
  if (turn < 1 || turn > kMostPasses)
    return usage_error(fmt::format("--turn {} is no usable number: give 1 to {}", turn, kMostPasses));
  const ImportanceMap map = RIDGE_TRY(read_map(*flags.map));
  TaskStudyReport report{.input = first, .map = *flags.map, .turn = static_cast<uint32_t>(turn)};
  report.capacity = RIDGE_TRY(parse_bytes(*flags.engine.memory));
  std::vector<sim::RecordedTrace> recorded = {RIDGE_TRY(sim::read_recorded(first))};
  const TaskTable table = RIDGE_TRY(table_of(map, *flags.map, recorded.front(), first));
  std::vector<size_t> tasks = {RIDGE_TRY(task_of(table, *flags.task, *flags.map))};
  for (const std::string& word : flags.mix) {
    const size_t cut = word.find('=');
    if (cut == std::string::npos)
      return usage_error(fmt::format("--mix '{}' is not understood: write TASK=TRACE", word));
    const std::string path = word.substr(cut + 1);
    tasks.push_back(RIDGE_TRY(task_of(table, word.substr(0, cut), *flags.map)));
    recorded.push_back(RIDGE_TRY(sim::read_recorded(path)));
    if (!same_blocks(recorded.front(), recorded.back()))
      return bad_input(
          fmt::format("{}: its blocks are not those of {}: record both with one model and one --memory", path, first));
  }
  std::vector<sim::TaskTrace> traces;
  for (size_t i = 0; i < recorded.size(); ++i) {
    traces.push_back({tasks[i], &recorded[i].trace});
    if (recorded[i].trace.pass_begins.size() < static_cast<size_t>(turn))
      return usage_error(fmt::format("--turn {}: a trace has only {}: give fewer", turn,
                                     counted(recorded[i].trace.pass_begins.size(), "pass", "passes")));
  }
  for (const sim::TurnOrder order : {sim::TurnOrder::in_turn, sim::TurnOrder::at_random}) {
    report.orders.push_back(
        {order, sim::study_tasks(traces, table,
                                 {.capacity = report.capacity, .turn = static_cast<uint32_t>(turn), .order = order})});
  }
  return print(flags.json ? task_study_json(report).dump(2) + "\n" : task_study_table(report));
}

}  // namespace ridge::cli
