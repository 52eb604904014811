#include "sim/task_study.h"

#include <algorithm>
#include <deque>
#include <optional>

#include "sim/policy.h"
#include "sim/random.h"

namespace ridge::sim {
namespace {

// A pass of the mixed trace: accesses [begin, end) of one of the traces.
struct MixedPass {
  const AccessTrace* trace = nullptr;
  size_t task = 0, begin = 0, end = 0;
  bool turn_begins = false;
};

std::vector<MixedPass> mix(std::span<const TaskTrace> traces, const TaskStudyOptions& options) {
  std::vector<MixedPass> out;
  std::vector<size_t> next(traces.size(), 0);
  Random random(options.seed);
  for (size_t turn = 0;; ++turn) {
    const size_t of = options.order == TurnOrder::in_turn ? turn % traces.size() : random.below(traces.size());
    const std::vector<size_t>& begins = traces[of].trace->pass_begins;
    if (next[of] + options.turn > begins.size()) return out;
    for (uint32_t n = 0; n < options.turn; ++n) {
      const size_t pass = next[of]++;
      const size_t end = pass + 1 < begins.size() ? begins[pass + 1] : traces[of].trace->accesses.size();
      out.push_back({traces[of].trace, traces[of].task, begins[pass], end, n == 0});
    }
  }
}

// The blocks that the cache is for, with what a reload costs: all that some task touches.
struct OwnBlocks {
  std::vector<uint8_t> counted;    // by block
  std::vector<CachedBlock> sizes;  // of those that the traces use
};

OwnBlocks own_blocks(std::span<const TaskTrace> traces, const TaskTable& table) {
  OwnBlocks own;
  own.counted.assign(table.mean.size(), 0);
  for (size_t b = 0; b < own.counted.size(); ++b) own.counted[b] = table.mean[b] > 0 ? 1 : 0;
  std::vector<uint64_t> size(own.counted.size(), 0);
  for (const TaskTrace& t : traces) {
    for (const Access& a : t.trace->accesses) {
      if (a.object < size.size()) size[a.object] = a.size;
    }
  }
  for (uint32_t b = 0; b < size.size(); ++b) {
    if (own.counted[b] != 0 && size[b] > 0)
      own.sizes.push_back({.block = b, .bytes = size[b], .reload = static_cast<double>(size[b])});
  }
  return own;
}

enum class Knows : uint8_t { nothing, mean, detected, foretold, labels };

// The engine's trained cache (memory/expert_training.cpp) without bytes.
class TrainedCache {
 public:
  TrainedCache(Knows knows, const TaskTable& table, const OwnBlocks& own, const TaskStudyOptions& options)
      : options_(options),
        own_(own),
        sizes_(table.mean.size()),
        model_(ImportanceModel::untrained()),
        cache_(model_, {.capacity = options.capacity}) {
    for (const CachedBlock& b : own.sizes) sizes_[b.block] = b;
    if (knows == Knows::nothing) return;
    const TaskMode mode = knows == Knows::detected   ? TaskMode::detected
                          : knows == Knows::foretold ? TaskMode::foretold
                                                     : TaskMode::mean;
    pins_.emplace(table, TaskPinsOptions{.mode = mode, .task = {}, .counted = own.counted});
    labelled_ = knows == Knows::labels;
    repin();
  }

  void pass(const MixedPass& p, TaskStudyRow& row) {
    if (pins_) before(p, row);
    (void)cache_.begin_pass();
    read_pins(row);
    ++row.passes;
    row.right += pins_ && pins_->task() == p.task ? 1 : 0;
    for (size_t i = p.begin; i < p.end; ++i) {
      const Access& a = p.trace->accesses[i];
      if (a.object >= own_.counted.size() || own_.counted[a.object] == 0) continue;
      const auto block = static_cast<uint32_t>(a.object);
      row.size += a.size;
      if (cache_.access(sizes_[block]).hit) row.hit_size += a.size;
      used_.push_back(block);
    }
  }

 private:
  void before(const MixedPass& p, TaskStudyRow& row) {
    bool changed = false;
    std::sort(used_.begin(), used_.end());
    used_.erase(std::unique(used_.begin(), used_.end()), used_.end());
    if (!used_.empty()) changed = pins_->note_pass(used_, 1);
    used_.clear();
    if (p.turn_begins && labelled_) changed = pins_->name_task(p.task);
    if (p.turn_begins && !labelled_) changed = pins_->begin_turn() || changed;
    if (!changed) return;
    ++row.changes;
    repin();
  }

  void repin() {
    pins_->train(model_);
    const std::vector<uint32_t> chosen = pins_->choose(own_.sizes, options_.capacity);
    std::vector<uint8_t> pinned(sizes_.size(), 0);
    uint64_t bytes = 0;
    to_pin_.clear();
    for (uint32_t b : chosen) {
      pinned[b] = 1;
      bytes += sizes_[b].bytes;
      to_pin_.push_back(b);
    }
    (void)cache_.repin(std::move(pinned), bytes);
  }

  void read_pins(TaskStudyRow& row) {
    uint64_t bytes = 0;
    while (!to_pin_.empty()) {
      const CachedBlock& block = sizes_[to_pin_.front()];
      if (!cache_.holds(block.block)) {
        if (bytes > 0 && bytes + block.bytes > options_.bytes_per_pass) return;
        bytes += block.bytes;
        row.pin_size += block.bytes;
        cache_.pin_came(block);
      }
      to_pin_.pop_front();
    }
  }

  const TaskStudyOptions& options_;
  const OwnBlocks& own_;
  std::vector<CachedBlock> sizes_;  // by block
  ImportanceModel model_;
  CacheManager cache_;
  std::optional<TaskPins> pins_;
  bool labelled_ = false;
  std::vector<uint32_t> used_;
  std::deque<uint32_t> to_pin_;
};

TaskStudyRow run_lru(std::span<const MixedPass> passes, const OwnBlocks& own, uint64_t capacity) {
  TaskStudyRow row{.name = "lru", .about = "what was used longest ago leaves"};
  const auto lru = find_policy("lru")->make({.capacity = capacity});
  for (const MixedPass& p : passes) {
    ++row.passes;
    for (size_t i = p.begin; i < p.end; ++i) {
      const Access& a = p.trace->accesses[i];
      if (a.object >= own.counted.size() || own.counted[a.object] == 0) continue;
      row.size += a.size;
      if (lru->access(a).hit) row.hit_size += a.size;
    }
  }
  return row;
}

}  // namespace

std::vector<TaskStudyRow> study_tasks(std::span<const TaskTrace> traces, const TaskTable& table,
                                      const TaskStudyOptions& options) {
  const std::vector<MixedPass> passes = mix(traces, options);
  const OwnBlocks own = own_blocks(traces, table);
  std::vector<TaskStudyRow> rows = {run_lru(passes, own, options.capacity),
                                    {.name = "untrained", .about = "by importance, without a map"},
                                    {.name = "mean", .about = "pins of all tasks together"},
                                    {.name = "detected", .about = "pins of the task that passes look like"},
                                    {.name = "foretold", .about = "the same, and a guess when a turn begins"},
                                    {.name = "labels", .about = "pins of the turn's task, which is known"}};
  constexpr Knows kKnows[] = {Knows::nothing, Knows::mean, Knows::detected, Knows::foretold, Knows::labels};
  for (size_t k = 0; k < std::size(kKnows); ++k) {
    TrainedCache cache(kKnows[k], table, own, options);
    for (const MixedPass& p : passes) cache.pass(p, rows[k + 1]);
  }
  return rows;
}

}  // namespace ridge::sim
