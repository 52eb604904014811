// Follows memory pressure while a model runs: between passes it gives pinned weights back and takes them again, and
// says each change once. What the model computes does not change.
//
// Not for: the decision (plan/live_budget.h), what may go (plan/elastic_room.h), or the blocks (memory/elastic_pins.h).
//
//   LivePins live({.floor = 256 * kMiB}, *source);
//   live.before_pass();                                 // no lease lives
//   live.stats().released_bytes
//
// One thread, that of the passes.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "machine/memory_limits.h"
#include "memory/streaming_source.h"
#include "plan/live_budget.h"

namespace ridge {

using PressureReader = std::function<MemoryPressure()>;

struct LiveStats {
  uint64_t releases = 0, released_bytes = 0;  // steps, and what the kernel got
  uint64_t returns = 0, returned_bytes = 0;   // steps, and what was read again
  uint64_t failed_returns = 0;                // that ended in a read error: those weights keep streaming
  uint64_t most_away = 0;                     // bytes at a time
  std::chrono::nanoseconds releasing{0}, returning{0};
};

class LivePins {
 public:
  // The source must outlive this. Where they are 0, floor and step are chosen: default_floor(), and an eighth of what
  // may go, at least 8 MiB. A step is never smaller than what goes together. A reader that is given is asked before
  // every pass instead of the system.
  LivePins(LiveOptions options, StreamingSource& source, PressureReader reader = {});

  // Looks at most every 250 ms: a look reads a few small files of /proc and /sys. What cannot be read again keeps
  // streaming, and whoever streams it is told what is wrong with the device.
  void before_pass();

  const LiveStats& stats() const { return stats_; }

 private:
  void give(const LiveStep& step);
  void take(const LiveStep& step, std::chrono::steady_clock::time_point now);

  LiveBudget budget_;
  StreamingSource& source_;
  PressureReader reader_;
  bool always_ = false;
  bool said_empty_ = false;  // that nothing is left to give
  std::chrono::steady_clock::time_point looked_{};
  LiveStats stats_;
};

}  // namespace ridge
