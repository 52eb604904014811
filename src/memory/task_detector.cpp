#include "memory/task_detector.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ridge {
namespace {

const double kPassDecay = std::exp2(-1 / kTaskHalfLife);
// Of the transitions from one task, at each further one.
constexpr double kTransitionDecay = 0.8;
// Turns that staying is believed in before any was seen.
constexpr double kStaying = 0.5;

}  // namespace

TaskDetector::TaskDetector(const TaskTable& table, std::vector<uint8_t> counted)
    : table_(table), counted_(std::move(counted)), nothing_(table.tasks(), 0), score_(table.tasks(), 0) {
  for (size_t t = 0; t < table_.tasks(); ++t) {
    for (uint32_t b = 0; b < counted_.size(); ++b) {
      if (counted_[b] != 0) nothing_[t] += std::log1p(-chance(t, b));
    }
  }
}

// Never 0 or 1: the map has seen so many tokens and no more (Krichevsky and Trofimov's half a count).
double TaskDetector::chance(size_t task, uint32_t block) const {
  const double tokens = static_cast<double>(std::max<uint64_t>(1, table_.tokens[task]));
  return (static_cast<double>(table_.touch[task][block]) * tokens + 0.5) / (tokens + 1);
}

double TaskDetector::likelihood(size_t task, std::span<const uint32_t> used, uint32_t tokens) const {
  // ln(1 − q) = n · ln(1 − p), so what nothing says of a pass is n times what it says of a token.
  double sum = nothing_[task] * tokens;
  for (const uint32_t b : used) {
    if (counted_[b] == 0) continue;
    const double missed = tokens * std::log1p(-chance(task, b));
    sum += std::log(-std::expm1(missed)) - missed;
  }
  return sum;
}

std::optional<size_t> TaskDetector::note_pass(std::span<const uint32_t> used, uint32_t tokens) {
  if (table_.tasks() < 2) return std::nullopt;
  for (size_t t = 0; t < score_.size(); ++t)
    score_[t] = kPassDecay * score_[t] + kTaskTrust * likelihood(t, used, tokens);
  // Only differences matter.
  const double most = *std::max_element(score_.begin(), score_.end());
  for (double& s : score_) s -= most;
  const size_t best = static_cast<size_t>(std::max_element(score_.begin(), score_.end()) - score_.begin());
  double other = -INFINITY;  // that must be left behind: the present task, or all of them
  for (size_t t = 0; t < score_.size(); ++t) {
    if (t != best && (!task_ || *task_ == t)) other = std::max(other, score_[t]);
  }
  const bool ahead = best != task_ && score_[best] - other >= kTaskMargin;
  if (!ahead || rival_ != best) sustained_ = 0;
  rival_ = ahead ? std::optional(best) : std::nullopt;
  if (!ahead || ++sustained_ < kTaskSustained) return std::nullopt;
  task_ = std::exchange(rival_, std::nullopt);
  sustained_ = 0;
  return task_;
}

void TaskDetector::assume(std::optional<size_t> task) {
  task_ = task;
  rival_ = std::nullopt;
  sustained_ = 0;
  std::fill(score_.begin(), score_.end(), 0.0);
}

void TaskPredictor::note_turn(size_t task) {
  if (last_) {
    for (double& count : counts_[*last_]) count *= kTransitionDecay;
    counts_[*last_][task] += 1;
  }
  last_ = task;
}

std::optional<size_t> TaskPredictor::next() const {
  if (!last_) return std::nullopt;
  size_t best = *last_;
  double most = counts_[*last_][best] + kStaying;
  for (size_t t = 0; t < counts_.size(); ++t) {
    if (counts_[*last_][t] <= most) continue;
    best = t;
    most = counts_[*last_][t];
  }
  return best;
}

}  // namespace ridge
