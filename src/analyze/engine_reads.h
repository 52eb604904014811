// The storage roof as the engine reaches it: its own I/O engine keeps its own number of requests of its own size in
// flight, into huge pages, while nobody computes. Threads that read into buffers of their own, which the rest of the
// probe uses for any size and depth, can be a third slower on a device that is paid for by page.
//
// Not for: the reads of one run (stream_reads.h).
//
//   StoragePoint p = RIDGE_TRY(measure_engine_reads("model.gguf", {.quick = true}));   // p.gb_per_s.value
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "machine/profile.h"

namespace ridge {

struct EngineReadsOptions {
  bool quick = false;  // 5 runs of 50 ms instead of 200 ms, after one that does not count
};

// The file is read from its begin to its end, again and again, past the page cache where that is possible. Bad input if
// it is smaller than what is in flight.
Result<StoragePoint> measure_engine_reads(const std::string& path, const EngineReadsOptions& options);

// The bytes that a file needs for it.
uint64_t engine_reads_file_bytes();

}  // namespace ridge
