// The ladder: contexts of a model's blocks loaded one after another, memory measured after every step, until a gate or
// the last block; then held, released, and extrapolated to all blocks. It answers how many of them could stay in memory
// before anybody plans on it.
//
// Not for: running a model, or printing (report/ladder_report.h).
//
//   Ladder ladder = RIDGE_TRY(climb(executor, {.step = 4, .hold = std::chrono::seconds(30)}));
//   LadderTrend trend = trend_of(ladder);          // trend.added_pss.value, .low, .high
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "machine/memory_state.h"
#include "model/executor.h"
#include "plan/memory_gates.h"
#include "plan/memory_trend.h"

namespace ridge {

struct LadderOptions {
  uint32_t step = 1;                  // contexts between two measurements
  std::optional<uint32_t> most = {};  // load at most so many contexts
  std::chrono::nanoseconds hold{0};   // how long what is loaded is kept and watched
  GateOptions gates = {};
  const std::atomic<bool>* interrupted = nullptr;           // ends loading or holding; everything is released as usual
  std::function<MemoryState()> measure = {};                // default: memory_state() of this process
  std::function<void(std::chrono::nanoseconds)> wait = {};  // default: sleep
};

// One block that was loaded.
struct LadderContext {
  BlockId block = 0;
  std::string name, kind;
  Lifecycle cost;
};

struct LadderRow {
  uint32_t contexts = 0;
  uint64_t weight_bytes = 0, overhead_bytes = 0;  // of all of them, by the executor's account
  double load_s = 0, init_s = 0;                  // of all of them
  MemoryState state;
};

struct LadderHold {
  double seconds = 0;
  MemoryState before, after;
  int64_t most_pss = 0;  // growth at its highest, of the measurements in between
};

enum class LadderEnd : uint8_t { all_loaded, enough, gate, interrupted };

struct Ladder {
  std::string executor;
  std::vector<std::string> kinds;         // in the order of their first block
  std::vector<uint64_t> blocks_of_kind;   // of the whole program
  std::vector<uint64_t> weights_of_kind;  // bytes, of the whole program
  uint32_t blocks = 0;                    // of the program
  uint64_t weight_bytes = 0;              // of all blocks
  MemoryState baseline, released;         // before the first context, and after the last is gone
  std::vector<LadderContext> contexts;    // in the order of the pass
  std::vector<LadderRow> rows;
  LadderEnd end = LadderEnd::all_loaded;
  std::string why;  // which gate
  std::optional<LadderHold> hold;
  double release_s = 0;    // wall time for all contexts
  MemoryGates::Room room;  // what the gates left at the base line
};

// Loads in the order of the pass. does_not_fit when a gate forbids even the first context; an error of the executor
// after everything was released.
Result<Ladder> climb(Executor& executor, const LadderOptions& options);

// "attn" of block "blk.3.attn/0": what is left without numbers; "ffn expert" of a block on demand.
std::string kind_of(const Block& block);

// What a walk over all blocks takes, by the measured means of each kind.
struct LifecycleSum {
  double load_s = 0, init_s = 0, release_s = 0;
};

struct LadderTrend {
  std::optional<Line> line;            // added PSS by contexts
  std::optional<Prediction> by_line;   // of the added PSS at all blocks
  std::optional<Prediction> by_kind;   // measured so far, and the rest by ratio and kind
  std::optional<RatioTrend> ratios;    // added PSS to weights
  std::optional<double> by_last_step;  // as the document did
  std::optional<double> mapped;        // bytes mapped at all blocks, in proportion, as the document did
  double overhead = 0;                 // added PSS / weights so far
  // The block count at which the room ends: loaded so far and, beyond, by the ratios; nothing if all blocks fit.
  std::optional<uint32_t> ends_at;
  LifecycleSum walk;
};
LadderTrend trend_of(const Ladder& ladder);

}  // namespace ridge
