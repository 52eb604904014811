// What it is worth to know the task: a cache of experts or bundles, trained by the map of a model, on a trace whose
// turns are of different tasks. Pins are those of the mean of all tasks, of the task that is detected, of the one that
// is foretold when a turn begins, or of the one that the turn is labelled with.
//
//   TaskTrace traces[] = {{"code", &code}, {"chat", &chat}};
//   for (const TaskStudyRow& row : study_tasks(traces, table, {.capacity = 64 << 20, .turn = 40})) …
//
// Turns are of `turn` passes each, as long as every trace has some left; blocks that the table knows nothing of are
// left out. Deterministic.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "memory/task_pins.h"
#include "sim/access_trace.h"

namespace ridge::sim {

struct TaskTrace {
  size_t task = 0;  // of the table
  const AccessTrace* trace = nullptr;
};

// Which task comes after which: each in its turn, or any of them.
enum class TurnOrder : uint8_t { in_turn, at_random };

struct TaskStudyOptions {
  uint64_t capacity = 0;  // bytes
  uint32_t turn = 32;     // passes
  TurnOrder order = TurnOrder::in_turn;
  uint64_t bytes_per_pass = 4 << 20;  // of pins that are read when the task changes; one block at least
  uint64_t seed = 1;
};

struct TaskStudyRow {
  std::string_view name, about;
  uint64_t size = 0;               // bytes that were asked for
  uint64_t hit_size = 0;           // and found
  uint64_t pin_size = 0;           // read before they were asked for, as pins of another task
  uint64_t changes = 0;            // of the task
  uint64_t passes = 0, right = 0;  // passes that began with the pins of their own task
  uint64_t read() const { return size - hit_size + pin_size; }
};

// Rows: lru, untrained, mean, detected, foretold, labels.
std::vector<TaskStudyRow> study_tasks(std::span<const TaskTrace> traces, const TaskTable& table,
                                      const TaskStudyOptions& options);

}  // namespace ridge::sim
