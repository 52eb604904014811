// The read roof of memory: how many bytes per second this machine reads, by footprint, threads and page size.
//
// Not for: latency, writes or copies; decoding reads weights, and this is its ceiling.
//
//   ReadPlan plan = read_plan({.threads = 2, .quick = true, .most_bytes = 1_GiB});
//   std::vector<ReadPoint> points = RIDGE_TRY(measure_reads(plan, bar));
#pragma once

#include <cstdint>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "machine/probe_rate.h"
#include "machine/profile.h"

namespace ridge {

enum class PageSize { small, huge };  // 4 KiB; 2 MiB by madvise

struct ReadPlan {
  std::vector<uint64_t> footprints;  // bytes, ascending, all threads together
  std::vector<int> threads;
  std::vector<PageSize> pages;  // in order; one that the kernel does not give is left out, or noted if alone
  RoundsPlan rounds;            // a sample reads its footprint for run_time, and once at least
};

struct ReadPlanOptions {
  int threads = 1;  // most threads
  bool quick = false;
  uint64_t most_bytes = 0;  // of memory that may be used at once
};

// Footprints from 16 KiB to 1 GiB, or to what `most_bytes` grant each page size; 1, 2, 3 … threads (powers of two above
// eight).
ReadPlan read_plan(const ReadPlanOptions& options);

// How often `bar` will be advanced, at most.
uint64_t point_count(const ReadPlan& plan);

Result<std::vector<ReadPoint>> measure_reads(const ReadPlan& plan, Progress& bar);

}  // namespace ridge
