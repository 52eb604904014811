// Which task a trained cache is pinned for, and what is pinned for it: by benefit, the chance that a token touches a
// block times what a reload costs, for each byte.
//
// The task is one that the user names, the one that is detected while passes go by, or the one that is foretold when a
// turn begins. The mean of all tasks where none is known yet. Not for: the bytes (expert_cache.h), or what is kept
// beside pins (cache_manager.h).
//
//   TaskPins pins(table, {.mode = TaskMode::detect, .counted = counted});
//   if (pins.note_pass(used, tokens)) repin(pins.choose(places));     // the task has changed
//   if (pins.begin_turn()) …
//
// One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "memory/cache_manager.h"
#include "memory/task_detector.h"

namespace ridge {

// Of the cache's room, what is pinned; the rest follows what is used.
inline constexpr double kPinnedShare = 0.5;

enum class TaskMode : uint8_t { mean, named, detected, foretold };

struct TaskPinsOptions {
  TaskMode mode = TaskMode::mean;
  std::optional<size_t> task = {};    // of TaskMode::named
  std::vector<uint8_t> counted = {};  // by block: the cache's own
};

// What a trained cache did about tasks.
struct TaskSwitch {
  uint64_t pass = 0;                 // that began with it
  std::optional<size_t> from, to;    // nothing: the mean of all
  bool foretold = false;             // when a turn began
  uint64_t passes = 0;               // until all of its pins were read or on their way
  uint64_t bytes = 0;                // read for that
  std::chrono::nanoseconds time{0};  // from the switch until then
  bool done = false;                 // pins are there; not: the next switch came first, or it goes on
};
struct TaskStats {
  uint64_t pass = 0;
  uint64_t changes = 0;                   // of the task
  std::vector<TaskSwitch> switches = {};  // the last of them; the first of all: the pins that it began with
  uint64_t pinned = 0;                    // blocks
};

class TaskPins {
 public:
  // The table must outlive it.
  TaskPins(const TaskTable& table, TaskPinsOptions options);

  // Each of these: whether pins are to be chosen anew.
  bool note_pass(std::span<const uint32_t> used, uint32_t tokens);
  bool begin_turn();
  // By hand: from now on this one, whatever is detected; nothing: the mean.
  bool name_task(std::optional<size_t> task);

  std::optional<size_t> task() const { return task_; }  // nothing: the mean
  TaskMode mode() const { return options_.mode; }
  const TaskTable& table() const { return table_; }

  // What is pinned within kPinnedShare of `capacity`, best first. `blocks` are the counted ones, with sizes.
  std::vector<uint32_t> choose(std::span<const CachedBlock> blocks, uint64_t capacity) const;
  // What the manager expects of blocks: frequencies of the present task, which weigh as much as what was used lately.
  void train(ImportanceModel& model) const;

 private:
  bool change(std::optional<size_t> task);

  const TaskTable& table_;
  TaskPinsOptions options_;
  std::optional<TaskDetector> detector_;
  std::optional<TaskPredictor> predictor_;
  std::optional<size_t> task_;
};

}  // namespace ridge
