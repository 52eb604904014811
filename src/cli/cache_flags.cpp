#include "cli/cache_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "analyze/cache_training.h"
#include "base/log.h"
#include "report/task_report.h"

namespace ridge::cli {

void add_cache_flags(CLI::App& command, CacheFlags& flags) {
  command.add_option("--map", flags.map, "an importance map: trains the cache")->type_name("FILE");
  command.add_option("--task", flags.task, "of the map: NAME, auto, predict (default: all)")->type_name("NAME");
  command.add_option("--mask-absent", flags.mask_absent, "lossy: scores of unread experts × G (0 to 1)")
      ->type_name("G");
}

Result<void> apply(const CacheFlags& flags, EngineOptions& options) {
  if (flags.task && flags.task->empty()) return usage_error("--task needs a name of the map, auto or predict");
  options.task = flags.task.value_or("");
  if (flags.mask_absent) {
    if (!(*flags.mask_absent >= 0 && *flags.mask_absent <= 1))
      return usage_error(fmt::format("--mask-absent {} is no usable factor: give 0 to 1", *flags.mask_absent));
    options.mask_absent = *flags.mask_absent;
  }
  if (!flags.map) return {};
  auto map = std::make_shared<const ImportanceMap>(RIDGE_TRY(read_map(*flags.map)));
  options.training = [map, map_path = *flags.map, path = options.path](const Model& model) {
    return cache_training(*map, map_path, model, path);
  };
  return {};
}

void tell_masking(const Engine& engine) {
  if (engine.mask_absent() == 1) return;
  note(
      fmt::format("--mask-absent {}: lossy, and answers depend on what is in memory; `ridge perplexity --mask-absent` "
                  "measures the loss",
                  engine.mask_absent()));
}

void tell_switches(const Engine& engine, uint64_t& told) {
  const TaskStats* stats = engine.task_stats();
  if (stats == nullptr || stats->changes == told) return;
  const size_t fresh = std::min<uint64_t>(stats->changes - told, stats->switches.size());
  for (size_t i = stats->switches.size() - fresh; i < stats->switches.size(); ++i)
    note(switch_words(*engine.task_table(), stats->switches[i]));
  told = stats->changes;
}

}  // namespace ridge::cli
