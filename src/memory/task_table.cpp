#include "memory/task_table.h"

#include <fmt/format.h>

#include <algorithm>

namespace ridge {

void TaskTable::fill_mean() {
  mean.assign(touch.empty() ? 0 : touch.front().size(), 0);
  for (const std::vector<float>& one : touch) {
    for (size_t b = 0; b < mean.size(); ++b) mean[b] += one[b] / static_cast<float>(touch.size());
  }
}

Result<TaskTable> task_table(const CacheTraining& training, const Program& program) {
  if (training.touch.size() != program.expert_groups.size())
    return bad_input(
        fmt::format("{}: tells of {} layers with experts or bundles, and the model has {}; make the map anew",
                    training.where, training.touch.size(), program.expert_groups.size()));
  TaskTable table;
  for (const CacheTask& task : training.tasks) {
    table.names.push_back(task.name);
    table.tokens.push_back(task.tokens);
  }
  const size_t tasks = table.tasks();
  table.touch.assign(tasks, std::vector<float>(program.blocks.size(), 0));
  for (size_t g = 0; g < program.expert_groups.size(); ++g) {
    const ExpertGroup& group = program.expert_groups[g];
    if (training.touch[g].size() != group.experts * tasks)
      return bad_input(
          fmt::format("{}: tells of {} experts or bundles of layer group {}, and the model has {}; make the "
                      "map anew",
                      training.where, training.touch[g].size() / std::max<size_t>(1, tasks), g, group.experts));
    for (uint32_t e = 0; e < group.experts; ++e) {
      for (uint32_t step : {group.first_step + 2 * e, group.first_step + 2 * e + 1}) {
        for (const Slice& slice : program.steps[step]) {
          for (size_t t = 0; t < tasks; ++t) table.touch[t][slice.block] = training.touch[g][e * tasks + t];
        }
      }
    }
  }
  table.fill_mean();
  return table;
}

bool has_blocks_on_demand(const Program& program) {
  return std::any_of(program.blocks.begin(), program.blocks.end(), [](const Block& b) { return b.on_demand; });
}

}  // namespace ridge
