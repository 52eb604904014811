// The cache of experts where it is trained: pins of a task, and what happens when it changes.
#include <algorithm>
#include <utility>

#include "memory/expert_cache.h"

namespace ridge {
namespace {

// The last ones; the account has room for no more.
constexpr size_t kSwitchesTold = 64;

}  // namespace

// A block takes a slot, whatever its size; what a reload costs follows its bytes where the cache is trained.
CachedBlock ExpertCache::in_cache(BlockId block) const {
  const double reload = pins_ ? static_cast<double>(options_.program->blocks[block].storage_bytes) : 1;
  return {.block = block, .bytes = 1, .reload = reload};
}

uint64_t ExpertCache::training_bytes(size_t blocks, size_t tasks) {
  // The table and its mean; frequency, position, what is counted; pins, twice; what was used, what is to be pinned.
  constexpr uint64_t kOfBlock = 3 * sizeof(float) + 3 + sizeof(CachedBlock) + 3 * sizeof(uint64_t) + sizeof(void*);
  return blocks * (tasks * sizeof(float) + kOfBlock) + kSwitchesTold * sizeof(TaskSwitch);
}

void ExpertCache::set_up_training(const ExpertTraining& training) {
  training_ = training;
  const Program& program = *options_.program;
  std::vector<uint8_t> counted(program.blocks.size(), 0);
  for (const auto& group : program.expert_blocks()) {
    for (BlockId block : group) counted[block] = options_.placement->pinned[block] ? 0 : 1;
  }
  used_pass_.assign(program.blocks.size(), UINT64_MAX);
  pins_.emplace(*training_.table, TaskPinsOptions{.mode = training.mode, .task = training.task, .counted = counted});
  for (BlockId block = 0; block < counted.size(); ++block) {
    if (counted[block] != 0) own_.push_back(in_cache(block));
  }
  repin(false);
}

// The pins of the present task; those that are not there are read by read_pins().
void ExpertCache::repin(bool foretold) {
  std::vector<TaskSwitch>& told = task_stats_.switches;
  const std::optional<size_t> before = told.empty() ? std::nullopt : told.back().to;
  task_stats_.changes += told.empty() ? 0 : 1;
  if (told.size() == kSwitchesTold) told.erase(told.begin());
  told.push_back({.pass = task_stats_.pass, .from = before, .to = pins_->task(), .foretold = foretold});
  pins_->train(model_);
  const uint64_t capacity = options_.placement->expert_cache * groups_.size();
  const std::vector<uint32_t> chosen = pins_->choose(own_, capacity);
  std::vector<uint8_t> pinned(uses_.size(), 0);
  for (uint32_t block : chosen) pinned[block] = 1;
  for (uint32_t left : manager_->repin(std::move(pinned), chosen.size())) uses_[left].kept = false;
  to_pin_.assign(chosen.begin(), chosen.end());
  task_stats_.pinned = chosen.size();
  since_switch_ = std::chrono::steady_clock::now();
}

// As many pins as a pass may read; the others wait for the next one, or until they are used.
void ExpertCache::read_pins() {
  TaskSwitch& now = task_stats_.switches.back();
  if (now.done) return;
  ++now.passes;
  uint64_t bytes = 0;
  while (!to_pin_.empty()) {
    const BlockId block = to_pin_.front();
    Use& use = uses_[block];
    if (use.slot >= 0 && slots_[static_cast<size_t>(use.slot)].content == Content::failed)
      drop(slots_[static_cast<size_t>(use.slot)]);
    if (use.slot < 0) {
      const uint64_t size = options_.program->blocks[block].storage_bytes;
      if (bytes > 0 && bytes + size > training_.bytes_per_pass) return;
      Slot* slot = slot_for(block);
      if (slot == nullptr) return;
      use.kept = true;
      submit(*slot, block);
      bytes += size;
      now.bytes += size;
    }
    use.kept = true;
    manager_->pin_came(in_cache(block));
    to_pin_.pop_front();
  }
  now.done = true;
  now.time = std::chrono::steady_clock::now() - since_switch_;
}

void ExpertCache::name_task(std::optional<size_t> task) {
  if (pins_ && pins_->name_task(task)) repin(false);
}

void ExpertCache::begin_turn() {
  if (pins_ && pins_->begin_turn()) repin(true);
}

}  // namespace ridge
