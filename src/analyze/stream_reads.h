// The storage roof of a run that streams, as it is right now: the run's own reads, through its own slots and I/O
// engine, with nobody computing on what they bring. Measured between the repetitions of a benchmark (analyze/bench.h).
//
// Not for: what a device can do with other requests (machine/storage_probe.h), or experts, whose reads a router
// chooses.
//
//   StreamReads reads(engine);
//   if (reads.possible()) double roof = RIDGE_TRY(reads.measure());      // 1e9 bytes per second
#pragma once

#include <vector>

#include "base/result.h"
#include "engine/engine.h"

namespace ridge {

class StreamReads {
 public:
  // The engine must outlive this. Between passes only.
  explicit StreamReads(const Engine& engine);

  // False where all weights are in memory, or some of the streamed ones are experts.
  bool possible() const { return bytes_ > 0; }
  // Of the weights of a decode pass, over whole passes of some 50 ms after one that is not counted. I/O errors.
  Result<double> measure() const;

 private:
  Result<void> pass() const;

  WeightSource* source_;
  std::vector<BlockId> order_;  // streamed visits of a pass
  uint64_t bytes_ = 0;          // that they read
};

}  // namespace ridge
