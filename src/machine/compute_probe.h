// The compute peaks of this machine, by type of number and extension of the instruction set, of one thread and of all.
//
// Not for: the loops themselves (compute_loop.h).
//
//   MachineProfile profile;
//   RIDGE_TRY(measure_compute({.threads = 2}, profile));      // peaks, the clock, and the figures of one core
#pragma once

#include "base/result.h"
#include "base/thread_pool.h"
#include "machine/compute_loop.h"
#include "machine/profile.h"

namespace ridge {

// 1e9 operations per second of CPU time, summed over the workers: cores share nothing here, and a worker that had to
// wait for its CPU says nothing about the peak. About `seconds` of each worker; 0 for a loop that does not run.
double peak_gops(ThreadPool& pool, const ComputeLoop& loop, double seconds);

struct ComputePlan {
  int threads = 1;
  bool quick = false;
};
// Adds the peaks of every loop that this CPU can run. Errors: those of check_peaks.
Result<void> measure_compute(const ComputePlan& plan, MachineProfile& profile);

// A bug, if a peak is above what the measured clock times the width of the instruction allows: then the clock changed
// meanwhile, or others had the core while it was measured, or the loop's count is wrong. The clock is the highest of
// the profile's two and `seen_ghz`. Peaks without an ISA are not checked.
Result<void> check_peaks(const MachineProfile& profile, double seen_ghz = 0);

}  // namespace ridge
