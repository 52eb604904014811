// What happened when, on which lane, for which block. The engine and the simulator emit the same type; a simulator's
// time points are its own, counted from any origin.
//
//   Trace trace({.capacity = 4096});
//   trace.attach(&writer);                            // a TraceSink: report/chrome_trace.h
//   if (trace_ptr) trace_ptr->add({.lane = Lane::read, .block = block, .begin = begin, .end = end, .bytes = bytes});
//   trace_ptr->add({.lane = Lane::compute, .block = kNoBlock, .begin = begin, .end = end, .name = "attention"});
//   trace.flush();
//
// Not for: sums (SourceStats, StageProfile), or the file (report/chrome_trace.h). docs/tracing.md says what a producer
// has to emit for the report to be complete.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "program/program.h"

namespace ridge {

// What an event is, and the row of the picture it is drawn in.
enum class Lane : uint8_t {
  compute,  // work on a block, or work that has none, under a name ("attention")
  read,     // bytes of a block on their way from storage: submitted, arrived. Several may be under way
  wait,     // computing stands still until a block has arrived
  init,     // a block (or all pinned ones, kNoBlock) is made ready: packed into pins, a context created
  release,  // a block's bytes are given up; from `begin` on they are not there. No length: its slot was taken over
  pass,     // one walk through the program, named "prefill", "decode" or as the producer calls it; with `tokens`
  memory,   // no length: `bytes` is the memory in use from `begin` on
};
inline constexpr size_t kLaneCount = 7;

inline const char* name_of_lane(Lane lane) {
  constexpr const char* kNames[kLaneCount] = {"compute", "read", "wait", "init", "release", "pass", "memory"};
  return kNames[static_cast<size_t>(lane)];
}

using TraceClock = std::chrono::steady_clock;

inline constexpr BlockId kNoBlock = std::numeric_limits<BlockId>::max();

struct TraceEvent {
  Lane lane = Lane::compute;
  BlockId block = 0;
  TraceClock::time_point begin, end;
  uint64_t bytes = 0;
  uint32_t tokens = 0;         // of a pass
  const char* name = nullptr;  // of what has no block; a string literal, since it is kept as it is
};

// Takes events when the buffer of a trace is full, on the thread that added the last one; within a lane in the order of
// their ends.
class TraceSink {
 public:
  virtual ~TraceSink() = default;
  virtual void take(std::span<const TraceEvent> events) = 0;
};

struct TraceOptions {
  size_t capacity = size_t{1} << 20;  // events held at once; without a sink no more than these are kept
  uint64_t sink_bytes = 0;            // memory of the sink, for memory_bytes()
};

// Thread-safe. Absent (a null pointer) when nobody listens, so that a run pays one test per event. Its memory is
// bounded: events beyond the capacity go to the sink, or are counted as dropped where there is none.
class Trace {
 public:
  explicit Trace(const TraceOptions& options = {}) : options_(options) {}

  // From now on events leave through `sink`, those held first. It must outlive the trace, or be detached (nullptr).
  void attach(TraceSink* sink) {
    std::lock_guard lock(mutex_);
    sink_ = sink;
    // All at once, so that no event pays for a page that was never touched.
    if (sink != nullptr) events_.reserve(options_.capacity);
  }

  void add(const TraceEvent& event) {
    std::lock_guard lock(mutex_);
    if (events_.size() >= options_.capacity) drain();
    if (events_.size() >= options_.capacity) {
      ++dropped_;
      return;
    }
    events_.push_back(event);
  }

  // Between passes: room for those to come, so that none of them is held up by the sink.
  void make_room() {
    std::lock_guard lock(mutex_);
    if (events_.size() >= options_.capacity / 2) drain();
  }
  // Hands all events to the sink.
  void flush() {
    std::lock_guard lock(mutex_);
    drain();
  }
  std::vector<TraceEvent> take() {
    std::lock_guard lock(mutex_);
    return std::exchange(events_, {});
  }

  uint64_t dropped() const {
    std::lock_guard lock(mutex_);
    return dropped_;
  }
  // The most that the trace and its sink take.
  uint64_t memory_bytes() const { return options_.capacity * sizeof(TraceEvent) + options_.sink_bytes; }

 private:
  void drain() {
    if (sink_ == nullptr || events_.empty()) return;
    sink_->take(events_);
    events_.clear();
  }

  mutable std::mutex mutex_;
  TraceOptions options_;
  TraceSink* sink_ = nullptr;
  std::vector<TraceEvent> events_;
  uint64_t dropped_ = 0;
};

}  // namespace ridge
