// The roofs of the machine as they are right now: how fast the weights of a loaded model can be read where they lie,
// and how many multiply-adds the cores do. Measured between the repetitions of a benchmark, so that both sides of a
// share saw the same machine.
//
// Not for: storage, or footprints and page sizes other than the model's (machine/probe.h).
//
//   WeightReads reads(engine);
//   if (reads.possible()) double roof = reads.measure();        // GB/s, all threads of the engine
//   ComputePeaks peaks = measure_peaks(*engine.machinery().pool);
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "engine/engine.h"

namespace ridge {

// Reads the panels of a model in place: the same bytes, pages, threads and caches as decoding, and no memory beside it.
class WeightReads {
 public:
  // The engine must outlive this. Between passes only.
  explicit WeightReads(const Engine& engine);

  // False where weights stream: what is not in memory cannot be read there.
  bool possible() const { return bytes_ > 0; }
  uint64_t bytes() const { return bytes_; }
  // 1e9 bytes per second of the better of two read-only loops (machine/bandwidth_loop.h), each over all weights at
  // least once and for some milliseconds.
  double measure() const;

 private:
  struct Part {
    const uint64_t* words = nullptr;
    size_t count = 0;
  };
  std::vector<std::vector<Part>> parts_;  // by worker
  ThreadPool* pool_ = nullptr;
  uint64_t bytes_ = 0;
};

// 1e9 operations per second of CPU time, all threads together; 0 where no loop knows this CPU. A multiply-add is two.
struct ComputePeaks {
  double int8_gops = 0, float_gops = 0;
};
// Takes about 10 ms.
ComputePeaks measure_peaks(ThreadPool& pool);

}  // namespace ridge
