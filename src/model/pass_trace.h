// The compute lane of one pass: work on blocks, attention, and what lies between them, as events of a trace. One look
// at the clock per event, and none without a trace.
//
// Not for: sums by kind of operation (stage_profile.h), or what storage does (memory/ tells that itself).
//
//   PassTrace trace(machinery.trace);
//   trace.between("small steps");          // what passed since the last event had no block of its own
//   … acquire …
//   trace.resume();                        // waiting is not ours to tell
//   … multiply …
//   trace.block(id);                       // what passed since
#pragma once

#include "program/trace.h"

namespace ridge {

class PassTrace {
 public:
  explicit PassTrace(Trace* trace) : trace_(trace) { resume(); }

  void resume() {
    if (trace_ != nullptr) since_ = TraceClock::now();
  }
  void block(BlockId block) { end(block, nullptr, TraceClock::duration::zero()); }
  void named(const char* name) { end(kNoBlock, name, TraceClock::duration::zero()); }
  // Norms, rope, activations, residuals, quantising. Less than a microsecond is not worth an event.
  void between(const char* name = "norms, rope, gates, sums") { end(kNoBlock, name, std::chrono::microseconds(1)); }

 private:
  void end(BlockId block, const char* name, TraceClock::duration least) {
    if (trace_ == nullptr) return;
    const TraceClock::time_point now = TraceClock::now();
    if (now - since_ >= least) {
      trace_->add({.lane = Lane::compute, .block = block, .begin = since_, .end = now, .name = name});
    }
    since_ = now;
  }

  Trace* trace_;
  TraceClock::time_point since_;
};

// A named piece of work without a block of its own, for the length of a scope.
class WorkTrace {
 public:
  WorkTrace(PassTrace& trace, const char* name) : trace_(trace), name_(name) { trace_.between(); }
  ~WorkTrace() { trace_.named(name_); }
  WorkTrace(const WorkTrace&) = delete;
  WorkTrace& operator=(const WorkTrace&) = delete;

 private:
  PassTrace& trace_;
  const char* name_;
};

}  // namespace ridge
