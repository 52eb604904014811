// The storage roof: bytes per second by request size and number of requests in flight, past the page cache, and through
// it for comparison.
//
// Not for: writes, or random small reads; weights are read in order and in large pieces.
//
//   StorageFile file = RIDGE_TRY(StorageFile::open("model.gguf"));
//   StoragePlan plan = storage_plan({.quick = true, .file_bytes = file.bytes(), .most_bytes = 64 * kMiB});
//   std::vector<StoragePoint> points = RIDGE_TRY(measure_storage(file, plan, bar));
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "machine/profile.h"
#include "machine/storage_file.h"

namespace ridge {

struct StorageShape {
  uint64_t request_bytes = 0;
  int depth = 1;  // requests in flight
};

struct StoragePlan {
  std::vector<StorageShape> direct, buffered;
  int runs = 5;
  std::chrono::nanoseconds run_time{};
};

struct StoragePlanOptions {
  bool quick = false;
  uint64_t file_bytes = 0;
  uint64_t most_bytes = 0;  // of buffers
};

StoragePlan storage_plan(const StoragePlanOptions& options);

// How often `bar` will be advanced, at most.
uint64_t point_count(const StoragePlan& plan);

// Where O_DIRECT is refused, says so and measures all shapes through the page cache, emptied before each run.
Result<std::vector<StoragePoint>> measure_storage(StorageFile& file, const StoragePlan& plan, Progress& bar);

}  // namespace ridge
