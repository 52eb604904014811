// What else memory does: copies, triads, and the wait for a line that nothing could foresee; by footprint and threads,
// beside the reads of bandwidth.h.
//
// Not for: the decode roof (reads are), or 4 KiB pages.
//
//   StreamPlan plan = stream_plan({.threads = 2, .quick = true, .most_bytes = 256 * kMiB});
//   StreamResults results = RIDGE_TRY(measure_streams(plan, bar));
#pragma once

#include <cstdint>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "machine/bandwidth.h"
#include "machine/probe_rate.h"
#include "machine/profile.h"

namespace ridge {

struct StreamPlan {
  std::vector<uint64_t> footprints;  // bytes of all arrays and threads together, ascending
  std::vector<int> threads;
  RoundsPlan rounds;
};
// From 64 KiB on by factors of 4 (quick: 16), one thread and all.
StreamPlan stream_plan(const ReadPlanOptions& options);
uint64_t point_count(const StreamPlan& plan);

struct StreamResults {
  std::vector<StreamPoint> streams;
  std::vector<LatencyPoint> latencies;
};
Result<StreamResults> measure_streams(const StreamPlan& plan, Progress& bar);

// Where the read rate steps down from one level of memory to the next: runs of at least two footprints whose rates are
// within a fifth of one another, at the largest number of threads.
std::vector<MemoryLevel> find_levels(const MachineProfile& profile);

}  // namespace ridge
