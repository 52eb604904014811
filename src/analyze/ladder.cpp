#include "analyze/ladder.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "base/check.h"
#include "base/seconds.h"
#include "machine/heap.h"

namespace ridge {
namespace {

using Clock = std::chrono::steady_clock;

// Every block once, in the order of the pass.
std::vector<BlockId> order_of(const Program& program) {
  std::vector<uint8_t> seen(program.blocks.size(), 0);
  std::vector<BlockId> order;
  for (const Visit& v : program.visits) {
    if (!std::exchange(seen[v.block], 1)) order.push_back(v.block);
  }
  return order;
}

size_t index_of(const Ladder& ladder, const std::string& kind) {
  return static_cast<size_t>(std::find(ladder.kinds.begin(), ladder.kinds.end(), kind) - ladder.kinds.begin());
}

// Releases whatever is still prepared, however the climb ends.
class Releaser {
 public:
  Releaser(Executor& executor, const std::vector<LadderContext>& contexts) : executor_(executor), contexts_(contexts) {}
  ~Releaser() { release_all(); }
  Releaser(const Releaser&) = delete;
  Releaser& operator=(const Releaser&) = delete;

  void release_all() {
    for (const LadderContext& c : contexts_) executor_.release(c.block);
  }

 private:
  Executor& executor_;
  const std::vector<LadderContext>& contexts_;
};

class Climb {
 public:
  Climb(Executor& executor, const LadderOptions& options) : executor_(executor), o_(options) {
    if (!o_.measure) o_.measure = [] { return memory_state(); };
    if (!o_.wait) o_.wait = [](std::chrono::nanoseconds time) { std::this_thread::sleep_for(time); };
  }

  Result<Ladder> run();

 private:
  bool interrupted() const { return o_.interrupted != nullptr && o_.interrupted->load(); }
  void describe(const std::vector<BlockId>& order);
  Result<void> load(const std::vector<BlockId>& order, const MemoryGates& gates);
  void add_row(const MemoryState& state);
  void hold(const MemoryGates& gates);
  void release(Releaser& releaser);
  void stop(LadderEnd end, std::string why) {
    ladder_.end = end;
    ladder_.why = std::move(why);
  }

  Executor& executor_;
  LadderOptions o_;
  Ladder ladder_;
};

void Climb::describe(const std::vector<BlockId>& order) {
  const Program& program = executor_.program();
  ladder_.executor = executor_.description();
  ladder_.blocks = static_cast<uint32_t>(order.size());
  for (BlockId b : order) {
    const std::string kind = kind_of(program.blocks[b]);
    const size_t k = index_of(ladder_, kind);
    if (k == ladder_.kinds.size()) {
      ladder_.kinds.push_back(kind);
      ladder_.blocks_of_kind.push_back(0);
      ladder_.weights_of_kind.push_back(0);
    }
    ++ladder_.blocks_of_kind[k];
    ladder_.weights_of_kind[k] += program.blocks[b].memory_bytes;
    ladder_.weight_bytes += program.blocks[b].memory_bytes;
  }
}

void Climb::add_row(const MemoryState& state) {
  LadderRow row{.contexts = static_cast<uint32_t>(ladder_.contexts.size()), .state = state};
  for (const LadderContext& c : ladder_.contexts) {
    row.weight_bytes += c.cost.weight_bytes;
    row.overhead_bytes += c.cost.overhead_bytes;
    row.load_s += c.cost.load_s;
    row.init_s += c.cost.init_s;
  }
  ladder_.rows.push_back(row);
}

Result<void> Climb::load(const std::vector<BlockId>& order, const MemoryGates& gates) {
  const size_t most = std::min<size_t>(order.size(), o_.most.value_or(ladder_.blocks));
  MemoryState now = ladder_.baseline;
  while (ladder_.contexts.size() < most) {
    const BlockId block = order[ladder_.contexts.size()];
    if (interrupted()) {
      stop(LadderEnd::interrupted, "");
      break;
    }
    if (auto why = gates.before(executor_.needs(block), now)) {
      stop(LadderEnd::gate, *why);
      break;
    }
    RIDGE_TRY(executor_.prepare(block));
    const Block& one = executor_.program().blocks[block];
    ladder_.contexts.push_back({block, one.name, kind_of(one), executor_.lifecycle(block)});
    now = o_.measure();
    if (auto why = gates.after(now)) {
      stop(LadderEnd::gate, *why);
      break;
    }
    if (ladder_.contexts.size() % o_.step == 0) add_row(now);
  }
  const bool measured = !ladder_.rows.empty() && ladder_.rows.back().contexts == ladder_.contexts.size();
  if (!ladder_.contexts.empty() && !measured) add_row(now);
  if (ladder_.end == LadderEnd::all_loaded && ladder_.contexts.size() < order.size()) stop(LadderEnd::enough, "");
  return {};
}

// Watches what is loaded. Every half second is often enough to see a gate passed, and too seldom to disturb.
void Climb::hold(const MemoryGates& gates) {
  constexpr std::chrono::nanoseconds kTick = std::chrono::milliseconds(500);
  LadderHold hold;
  hold.before = hold.after = ladder_.rows.back().state;
  const auto begin = Clock::now();
  for (std::chrono::nanoseconds left = o_.hold; left.count() > 0 && !interrupted(); left -= std::min(left, kTick)) {
    o_.wait(std::min(left, kTick));
    hold.after = o_.measure();
    hold.most_pss = std::max(hold.most_pss, growth(hold.before.pss, hold.after.pss));
    if (auto why = gates.after(hold.after)) {
      if (ladder_.end != LadderEnd::gate) stop(LadderEnd::gate, "while held: " + *why);
      break;
    }
  }
  hold.seconds = seconds(Clock::now() - begin);
  if (interrupted()) stop(LadderEnd::interrupted, "");
  ladder_.hold = hold;
}

void Climb::release(Releaser& releaser) {
  const auto begin = Clock::now();
  releaser.release_all();
  ladder_.release_s = seconds(Clock::now() - begin);
  for (LadderContext& c : ladder_.contexts) c.cost.release_s = executor_.lifecycle(c.block).release_s;
  trim_heap();
  ladder_.released = o_.measure();
}

Result<Ladder> Climb::run() {
  RIDGE_CHECK(o_.step >= 1, "a step is of one context or more");
  const std::vector<BlockId> order = order_of(executor_.program());
  describe(order);
  trim_heap();
  ladder_.baseline = o_.measure();
  const MemoryGates gates(o_.gates, ladder_.baseline);
  ladder_.room = gates.room();
  if (auto why = gates.after(ladder_.baseline)) {
    return does_not_fit(fmt::format("no context can be loaded: {}: end other programs or move the gate", *why));
  }
  Releaser releaser(executor_, ladder_.contexts);
  RIDGE_TRY(load(order, gates));
  if (ladder_.contexts.empty() && ladder_.end == LadderEnd::gate) {
    return does_not_fit(fmt::format("no context can be loaded: {}: end other programs or move the gate", ladder_.why));
  }
  // Past a gate nothing is held: the memory goes back at once.
  const bool safe = !ladder_.rows.empty() && !gates.after(ladder_.rows.back().state);
  if (safe && o_.hold.count() > 0 && !interrupted()) hold(gates);
  release(releaser);
  return std::move(ladder_);
}

// The block at which `room` bytes end, from what was measured and, beyond, by the trend's ratios.
std::optional<uint32_t> end_of_room(const Ladder& ladder, const LadderTrend& trend) {
  if (ladder.rows.empty() || ladder.room.bytes == UINT64_MAX) return std::nullopt;
  const auto room = static_cast<double>(ladder.room.bytes);
  for (const LadderRow& row : ladder.rows) {
    if (static_cast<double>(growth(ladder.baseline.pss, row.state.pss)) > room) return row.contexts - 1;
  }
  const uint32_t loaded = ladder.rows.back().contexts;
  if (ladder.end == LadderEnd::gate) return loaded;
  if (loaded == ladder.blocks || !trend.by_kind) return std::nullopt;
  // Beyond what was loaded the blocks are taken to be of the same mean size: the order of kinds repeats.
  const auto added = static_cast<double>(growth(ladder.baseline.pss, ladder.rows.back().state.pss));
  const double each = (trend.by_kind->value - added) / static_cast<double>(ladder.blocks - loaded);
  if (trend.by_kind->value <= room || each <= 0) return std::nullopt;
  return loaded + static_cast<uint32_t>(std::max(0.0, room - added) / each);
}

LifecycleSum walk_of(const Ladder& ladder) {
  std::vector<LifecycleSum> sums(ladder.kinds.size());
  std::vector<double> counts(ladder.kinds.size(), 0), weights(ladder.kinds.size(), 0);
  LifecycleSum all;
  double all_weights = 0;
  auto add = [](LifecycleSum& to, const LifecycleSum& more, double factor) {
    to.load_s += factor * more.load_s;
    to.init_s += factor * more.init_s;
    to.release_s += factor * more.release_s;
  };
  for (const LadderContext& c : ladder.contexts) {
    const size_t k = index_of(ladder, c.kind);
    const LifecycleSum one{c.cost.load_s, c.cost.init_s, c.cost.release_s};
    add(sums[k], one, 1);
    add(all, one, 1);
    weights[k] += static_cast<double>(c.cost.weight_bytes);
    all_weights += static_cast<double>(c.cost.weight_bytes);
  }
  LifecycleSum walk;
  if (all_weights <= 0) return walk;
  // By bytes: blocks of one kind may differ in their types. A kind that was not seen takes as long as all together.
  for (size_t k = 0; k < ladder.kinds.size(); ++k) {
    const auto bytes = static_cast<double>(ladder.weights_of_kind[k]);
    if (weights[k] > 0) {
      add(walk, sums[k], bytes / weights[k]);
    } else {
      add(walk, all, bytes / all_weights);
    }
  }
  return walk;
}

// What each measured step added, by kind.
std::vector<GrowthStep> steps_of(const Ladder& ladder) {
  std::vector<GrowthStep> steps;
  uint64_t before = ladder.baseline.pss;
  size_t context = 0;
  for (const LadderRow& row : ladder.rows) {
    GrowthStep step{.weights = std::vector<double>(ladder.kinds.size(), 0),
                    .added = static_cast<double>(growth(before, row.state.pss))};
    for (; context < row.contexts; ++context) {
      const LadderContext& c = ladder.contexts[context];
      step.weights[index_of(ladder, c.kind)] += static_cast<double>(c.cost.weight_bytes);
    }
    before = row.state.pss;
    steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace

std::string kind_of(const Block& block) {
  const std::string name = block.name.substr(0, block.name.find('/'));
  std::string kind;
  for (size_t at = 0; at < name.size();) {
    const size_t end = std::min(name.find('.', at), name.size());
    const std::string part = name.substr(at, end - at);
    const bool number = part.find_first_not_of("0123456789") == std::string::npos;
    if (!number && part != "blk") kind += (kind.empty() ? "" : ".") + part;
    at = end + 1;
  }
  if (kind.empty()) kind = name;
  return block.on_demand ? kind + " expert" : kind;
}

Result<Ladder> climb(Executor& executor, const LadderOptions& options) { return Climb(executor, options).run(); }

LadderTrend trend_of(const Ladder& ladder) {
  LadderTrend trend;
  if (ladder.rows.empty()) return trend;
  std::vector<Level> levels;
  for (const LadderRow& row : ladder.rows) {
    levels.push_back(
        {static_cast<double>(row.contexts), static_cast<double>(growth(ladder.baseline.pss, row.state.pss))});
  }
  const auto all = static_cast<double>(ladder.blocks);
  const Level mapped{levels.back().contexts,
                     static_cast<double>(growth(ladder.baseline.mapped_bytes, ladder.rows.back().state.mapped_bytes))};
  trend.line = fit_line(levels);
  trend.by_line = line_at(levels, all);
  trend.by_last_step = last_step_at(levels, all);
  trend.mapped = proportional_at({&mapped, 1}, all);
  trend.overhead = levels.back().value / static_cast<double>(ladder.rows.back().weight_bytes);
  trend.ratios = RatioTrend::fit(steps_of(ladder));
  if (trend.ratios) {
    std::vector<double> rest(ladder.weights_of_kind.begin(), ladder.weights_of_kind.end());
    for (const LadderContext& c : ladder.contexts)
      rest[index_of(ladder, c.kind)] -= static_cast<double>(c.cost.weight_bytes);
    Prediction p = trend.ratios->rest(rest);
    const double so_far = levels.back().value;
    trend.by_kind = Prediction{p.value + so_far, p.low + so_far, p.high + so_far, p.freedom};
  }
  trend.ends_at = end_of_room(ladder, trend);
  trend.walk = walk_of(ladder);
  return trend;
}

}  // namespace ridge
