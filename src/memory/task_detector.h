// Which task a text is of, by the blocks that its passes use; and which one comes next, by those that came before.
//
// The detector takes every block as a coin of its own: a pass of n tokens uses it with chance 1 − (1 − p)ⁿ, p the
// task's touch of it. The log-likelihoods of the last passes are added up, older ones counting half after kTaskHalfLife
// passes, and tempered by kTaskTrust, as blocks are not independent. The task changes when another is kTaskMargin nats
// likelier for kTaskSustained passes on end.
//
// The predictor is a Markov chain of first order over the tasks of turns, whose older transitions count less.
//
//   TaskDetector detector(table, counted);
//   if (auto task = detector.note_pass(used, tokens)) …            // it has changed
//   TaskPredictor predictor(table.tasks());
//   predictor.note_turn(task);
//   predictor.next();                                              // nothing before the first turn
//
// Deterministic. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "memory/task_table.h"

namespace ridge {

inline constexpr double kTaskHalfLife = 16, kTaskTrust = 0.25, kTaskMargin = 4;
inline constexpr uint32_t kTaskSustained = 3;

class TaskDetector {
 public:
  // counted: by block, which of them say something (those that the cache sees). The table must outlive it.
  TaskDetector(const TaskTable& table, std::vector<uint8_t> counted);

  // Blocks that a pass of so many tokens used, each once. The task if it is another from now on.
  std::optional<size_t> note_pass(std::span<const uint32_t> used, uint32_t tokens);
  // Begins anew with this task.
  void assume(std::optional<size_t> task);
  std::optional<size_t> task() const { return task_; }

 private:
  double chance(size_t task, uint32_t block) const;
  double likelihood(size_t task, std::span<const uint32_t> used, uint32_t tokens) const;

  const TaskTable& table_;
  std::vector<uint8_t> counted_;
  std::vector<double> nothing_;  // by task: log-likelihood of a token that uses none
  std::vector<double> score_;    // by task
  std::optional<size_t> task_, rival_;
  uint32_t sustained_ = 0;  // passes that rival_ has been likelier for
};

class TaskPredictor {
 public:
  explicit TaskPredictor(size_t tasks) : counts_(tasks, std::vector<double>(tasks, 0)) {}
  // The task of a turn that is over.
  void note_turn(size_t task);
  // The likeliest task of the next turn; what is as likely as staying does not count. Nothing before any turn.
  std::optional<size_t> next() const;

 private:
  std::vector<std::vector<double>> counts_;  // from, to
  std::optional<size_t> last_;
};

}  // namespace ridge
