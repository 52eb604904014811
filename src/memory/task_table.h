// What is known beforehand of a cache of experts or of bundles of neurons: by task, the chance that a token touches
// each of them. It trains the cache: what it holds from the start, and what it expects of blocks that were not used
// lately.
//
// Not for: counting touches (analyze/importance_map.h), or what the cache does with them (task_pins.h).
//
//   TaskTable table = RIDGE_TRY(task_table(training, program));
//   float chance = table.touch[task][block];
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "program/program.h"

namespace ridge {

struct CacheTask {
  std::string name;
  uint64_t tokens = 0;  // that touches were counted at
};

struct CacheTraining {
  std::vector<CacheTask> tasks;
  // By expert group of the program: [experts, tasks].
  std::vector<std::vector<float>> touch;
  std::string where;  // the file that says so, for messages
};

struct TaskTable {
  std::vector<std::string> names;         // of tasks
  std::vector<uint64_t> tokens;           // by task
  std::vector<std::vector<float>> touch;  // by task and block; 0 for what every token needs
  std::vector<float> mean;                // by block, over tasks alike

  size_t tasks() const { return names.size(); }
  // Of the task, or the mean.
  const std::vector<float>& of(std::optional<size_t> task) const { return task ? touch[*task] : mean; }
  void fill_mean();
};

// Bad input: the program has other groups, or other numbers of experts in them.
Result<TaskTable> task_table(const CacheTraining& training, const Program& program);

// That pins would be chosen in vain: the program has nothing on demand.
bool has_blocks_on_demand(const Program& program);

}  // namespace ridge
