// What happened when, on which lane, for which block. The engine and the simulator emit the same type.
//
//   if (trace) trace->add({Lane::read, block, begin, end, bytes});
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <vector>

#include "program/program.h"

namespace ridge {

enum class Lane : uint8_t { compute, read, wait, init, release };

using TraceClock = std::chrono::steady_clock;

struct TraceEvent {
  Lane lane = Lane::compute;
  BlockId block = 0;
  TraceClock::time_point begin, end;
  uint64_t bytes = 0;
};

// Thread-safe. Absent (a null pointer) when nobody listens, so that a run pays one test per event.
class Trace {
 public:
  void add(const TraceEvent& event) {
    std::lock_guard lock(mutex_);
    events_.push_back(event);
  }
  std::vector<TraceEvent> take() {
    std::lock_guard lock(mutex_);
    return std::move(events_);
  }

 private:
  std::mutex mutex_;
  std::vector<TraceEvent> events_;
};

}  // namespace ridge
