// How fast workers do a piece of work together: what the probes of memory time.
//
// Not for: work of one thread that waits for others; threads here spin until all have started.
//
//   Measured gb = measure_rate({.runs = 5, .run_time = 5ms}, bytes / 1e9, [&](uint64_t passes) {
//     return seconds_together(pool, [&](int worker) { read(worker, passes); });
//   });
#pragma once

#include <chrono>
#include <cstdint>

#include "base/function_ref.h"
#include "base/thread_pool.h"
#include "machine/profile.h"

namespace ridge {

// Seconds in which all workers do job(worker), from the first start to the last end. They start together, so waking
// them is not in the figure.
double seconds_together(ThreadPool& pool, FunctionRef<void(int worker)> job);

struct RateRuns {
  int runs = 5;
  std::chrono::nanoseconds run_time{};  // that each takes at least
};
// `amount`, of one pass, per second: median and quartiles of the runs. seconds_of(passes) does that many passes and
// says how long they took; the first ones, not counted, warm the caches and say how many fill a run.
Measured measure_rate(const RateRuns& runs, double amount, FunctionRef<double(uint64_t passes)> seconds_of);

}  // namespace ridge
