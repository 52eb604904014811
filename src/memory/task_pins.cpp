#include "memory/task_pins.h"

#include <algorithm>
#include <utility>

namespace ridge {
namespace {

// Of expected uses: the map's frequency, and decayed ones at half-lives of 3, 12, 48 and 192 turns. Those of an
// untrained cache (ImportanceModel::untrained), halved.
constexpr ImportanceFeatures kTrainedWeights = {0, 0.5, 0, 0.05, 0.1, 0.15, 0.2, 0, 0};

}  // namespace

TaskPins::TaskPins(const TaskTable& table, TaskPinsOptions options) : table_(table), options_(std::move(options)) {
  if (options_.mode == TaskMode::named) task_ = options_.task;
  if (options_.mode == TaskMode::detected || options_.mode == TaskMode::foretold)
    detector_.emplace(table_, options_.counted);
  if (options_.mode == TaskMode::foretold) predictor_.emplace(table_.tasks());
}

bool TaskPins::change(std::optional<size_t> task) { return std::exchange(task_, task) != task; }

bool TaskPins::note_pass(std::span<const uint32_t> used, uint32_t tokens) {
  if (!detector_) return false;
  const std::optional<size_t> found = detector_->note_pass(used, tokens);
  return found && change(found);
}

bool TaskPins::begin_turn() {
  if (!predictor_ || !detector_->task()) return false;
  predictor_->note_turn(*detector_->task());
  const std::optional<size_t> next = predictor_->next();
  detector_->assume(next);
  return change(next);
}

bool TaskPins::name_task(std::optional<size_t> task) {
  options_.mode = task ? TaskMode::named : TaskMode::mean;
  detector_.reset();
  predictor_.reset();
  return change(task);
}

std::vector<uint32_t> TaskPins::choose(std::span<const CachedBlock> blocks, uint64_t capacity) const {
  const std::vector<float>& touch = table_.of(task_);
  auto benefit = [&](const CachedBlock& b) {
    return static_cast<double>(touch[b.block]) * b.reload / static_cast<double>(b.bytes);
  };
  std::vector<const CachedBlock*> order;
  for (const CachedBlock& b : blocks) {
    if (touch[b.block] > 0) order.push_back(&b);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](const CachedBlock* a, const CachedBlock* b) { return benefit(*a) > benefit(*b); });
  uint64_t room = static_cast<uint64_t>(kPinnedShare * static_cast<double>(capacity));
  std::vector<uint32_t> out;
  for (const CachedBlock* b : order) {
    if (b->bytes > room) continue;
    room -= b->bytes;
    out.push_back(b->block);
  }
  return out;
}

void TaskPins::train(ImportanceModel& model) const {
  const std::vector<float>& touch = table_.of(task_);
  model.frequency = touch;
  model.weights = kTrainedWeights;
  if (model.position.size() == touch.size()) return;
  // Blocks on demand come in the order of the program.
  model.position.resize(touch.size());
  for (size_t b = 0; b < touch.size(); ++b)
    model.position[b] = (static_cast<float>(b) + 0.5f) / static_cast<float>(touch.size());
}

}  // namespace ridge
