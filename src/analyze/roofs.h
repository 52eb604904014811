// The roofs of the machine as they are right now: how fast the weights of a loaded model can be read where they lie,
// and how many multiply-adds the cores do. Measured between the repetitions of a benchmark, so that both sides of a
// share saw the same machine.
//
// Not for: storage, or footprints and page sizes other than the model's (machine/probe.h).
//
//   WeightReads reads(engine);
//   if (reads.possible()) double roof = reads.measure();        // GB/s, all threads of the engine
//   ComputePeaks peaks = measure_peaks(*engine.machinery().pool, engine.numerics());
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "engine/engine.h"

namespace ridge {

// Reads memory in place: the same bytes, pages, threads and caches as computing, and no memory beside it.
class MemoryReads {
 public:
  struct Stretch {
    const uint8_t* data = nullptr;  // aligned for words
    uint64_t bytes = 0;
  };
  MemoryReads() = default;
  // Each stretch is cut between the workers, in steps of the loop's kilobyte; what is left of it is not read.
  MemoryReads(ThreadPool& pool, std::span<const Stretch> stretches);

  // False where there is nothing to read.
  bool possible() const { return bytes_ > 0; }
  uint64_t bytes() const { return bytes_; }
  // 1e9 bytes per second of the better of two read-only loops (machine/bandwidth_loop.h), each over everything at least
  // once and for some milliseconds.
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

// The panels of a loaded model, of all operators or of one; none where weights stream: what is not in memory cannot be
// read there. The engine must outlive what is made of them.
std::vector<MemoryReads::Stretch> weight_stretches(const Engine& engine, std::optional<Operator> op = std::nullopt);
// The keys and values of the first positions.
std::vector<MemoryReads::Stretch> cache_stretches(const Engine& engine, uint64_t positions);

// All weights of a model. Between passes only.
class WeightReads : public MemoryReads {
 public:
  explicit WeightReads(const Engine& engine) : MemoryReads(*engine.machinery().pool, weight_stretches(engine)) {}
};

// 1e9 operations per second of CPU time, all threads together; 0 where no loop knows this CPU. A multiply-add is two.
struct ComputePeaks {
  double int8_gops = 0, float_gops = 0;
};
// Of the widest units that the kernels of these numerics may use: tiles of bytes where they are granted; bf16 with
// `fast` alone. Takes about 10 ms.
ComputePeaks measure_peaks(ThreadPool& pool, Numerics numerics);

}  // namespace ridge
