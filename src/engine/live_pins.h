// Follows memory pressure while a model runs: between passes it gives pinned weights back and takes them again, and
// says so once for each step. What the model computes does not change.
//
// Not for: the decision (plan/live_budget.h), or the blocks (memory/elastic_pins.h).
//
//   LivePins live({.floor = 256 * kMiB, .step = 32 * kMiB}, *source);
//   RIDGE_TRY(live.before_pass());
#pragma once

#include <chrono>
#include <functional>

#include "base/result.h"
#include "machine/memory_limits.h"
#include "memory/streaming_source.h"
#include "plan/live_budget.h"

namespace ridge {

using PressureReader = std::function<MemoryPressure()>;

class LivePins {
 public:
  // The source must outlive this. An empty reader: memory_pressure().
  LivePins(const LiveOptions& options, StreamingSource& source, PressureReader reader = {});

  // Looks at most every 250 ms: a look reads a few small files of /proc, about 0.2 ms. I/O errors of reading again.
  Result<void> before_pass();

 private:
  LiveBudget budget_;
  StreamingSource& source_;
  PressureReader reader_;
  bool always_ = false;  // a given reader is asked before every pass
  std::chrono::steady_clock::time_point looked_{};
};

}  // namespace ridge
