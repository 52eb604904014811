// Whether a run gives some of its pinned weights back now, or takes some again: by signs of memory pressure, in steps,
// with rests between them. It decides; whoever holds the source acts.
//
// No flapping: what went comes back only after a calm, only where there is room for it, and the calm that is asked for
// doubles each time that taking brought the trouble back.
//
// Not for: reading the signs (machine/memory_limits.h), or which blocks go (memory/elastic_pins.h).
//
//   LiveBudget live({.floor = 256 * kMiB, .step = 32 * kMiB});
//   LiveStep step = live.look(memory_pressure(), source.given_back(), std::chrono::steady_clock::now());
//   if (step.give > 0) source.give_back(step.give);       // step.why: "MemAvailable 60.0 MiB < floor 256 MiB"
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "machine/memory_limits.h"

namespace ridge {

struct LiveOptions {
  uint64_t floor = 0;                     // of MemAvailable; below it weights are given back
  uint64_t step = 0;                      // bytes that go or come at a time, at least
  double stalled = 0.1;                   // share of time that tasks may stand still for memory
  std::chrono::milliseconds rest{1000};   // after a step, before its effect shows in the signs
  std::chrono::milliseconds calm{10000};  // without a sign of pressure, before anything is taken again
};

// At most one of the two is above 0.
struct LiveStep {
  uint64_t give = 0, take = 0;
  std::string why;
};

class LiveBudget {
 public:
  using Clock = std::chrono::steady_clock;
  explicit LiveBudget(const LiveOptions& options) : options_(options), calm_(options.calm) {}

  // `given_back`: bytes that are gone now. Looks may come at any pace; the first one is the base line of limit hits.
  LiveStep look(const MemoryPressure& pressure, uint64_t given_back, Clock::time_point now);
  // What a step took could not be had: as if there had been trouble.
  void failed(Clock::time_point now) { note_trouble(now); }

 private:
  std::optional<std::string> sign(const MemoryPressure& pressure);
  bool room_for(uint64_t bytes, const MemoryPressure& pressure) const;
  void note_trouble(Clock::time_point now);

  LiveOptions options_;
  std::chrono::milliseconds calm_;  // asked for now
  std::optional<uint64_t> limit_hits_;
  std::optional<Clock::time_point> stepped_, troubled_, took_;
};

// MemAvailable below which a run on this machine gives weights back unless told otherwise: 1/32 of what is available at
// the start, at most 256 MiB.
uint64_t default_floor(uint64_t available);

}  // namespace ridge
