// What an engine does with the training of its cache: which tasks there are, and which one it begins with.
#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "engine/engine.h"
#include "memory/expert_cache.h"

namespace ridge {
namespace {

TaskMode mode_of(const std::string& task) {
  if (task.empty()) return TaskMode::mean;
  if (task == "auto") return TaskMode::detected;
  return task == "predict" ? TaskMode::foretold : TaskMode::named;
}

Result<std::optional<size_t>> find_task(const CacheTraining& training, const std::string& name) {
  std::string known;
  for (size_t t = 0; t < training.tasks.size(); ++t) {
    if (training.tasks[t].name == name) return std::optional(t);
    known += (t > 0 ? ", " : "") + training.tasks[t].name;
  }
  return usage_error(
      fmt::format("task '{}' is not in {}: it has {}; auto and predict find out", name, training.where, known));
}

}  // namespace

// The training stays on the heap, and what it takes there is measured with all else that does.
Result<void> Engine::prepare_training() {
  if (!options_.training) {
    if (options_.task.empty()) return {};
    return usage_error(fmt::format("--task {} needs --map: which blocks a task touches is in a map", options_.task));
  }
  if (options_.expert_policy.value_or(ExpertPolicy::importance) != ExpertPolicy::importance)
    return usage_error(fmt::format("--map trains the cache by importance, not {}: leave --expert-policy out",
                                   name_of(*options_.expert_policy)));
  options_.expert_policy = ExpertPolicy::importance;
  training_ = RIDGE_TRY(options_.training(*model_));
  if (mode_of(options_.task) == TaskMode::named) (void)RIDGE_TRY(find_task(*training_, options_.task));
  return {};
}

// Once there is a plan.
Result<void> Engine::settle_tasks() {
  if (!training_) return {};
  tasks_ = RIDGE_TRY(ridge::task_table(*training_, plan_.program));
  if (plan_.placement.expert_cache == 0) {
    const bool all =
        std::all_of(plan_.placement.pinned.begin(), plan_.placement.pinned.end(), [](uint8_t p) { return p != 0; });
    note(all ? "--map changes nothing: every block is in memory"
             : "--map changes nothing: the budget leaves no room for a cache");
  }
  return {};
}

TaskMode Engine::first_task(std::optional<size_t>& task) const {
  const TaskMode mode = mode_of(options_.task);
  if (mode == TaskMode::named) task = find_task(*training_, options_.task).value();
  return mode;
}

Result<void> Engine::name_task(const std::string& task) {
  if (!training_) return usage_error("there are no tasks: start with --map");
  source_->name_task(RIDGE_TRY(find_task(*training_, task)));
  return {};
}

}  // namespace ridge
