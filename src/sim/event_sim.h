// The event simulator: operations on lanes, in simulated time.
//
// A lane does one thing at a time, in the order of the operations; an operation starts when those before it are over,
// its lane is free, what it takes of slots and memory is there, and, if it needs the driver, nobody else has it. The
// read lane is a queue of requests instead, with a depth, a bandwidth and a latency.
// Not for: what to do in which order (host_model.h, lifecycle.h), or telling what happened (sim_trace.h).
//
//   EventSim sim({.slots = 2});
//   OpId load = sim.add({.lane = Lane::read, .block = b, .seconds = 0.2, .take = {.slots = 1}});
//   OpId run = sim.add({.lane = Lane::compute, .block = b, .seconds = 0.5, .give = {.slots = 1}}, {load});
//   SimResult r = sim.run();                       // r.times[run].end, r.makespan
//
// Times are seconds from the beginning. Deterministic: ties go to the operation that was added first.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <vector>

#include "program/trace.h"

namespace ridge::sim {

using OpId = uint32_t;
inline constexpr size_t kLanes = 5;  // values of Lane

// Storage as reads see it: up to `depth` requests are under way, each is answered after `latency_s` at the soonest, and
// the device serves one after the other: `request_s` and its bytes at `bytes_per_s`.
struct StorageQueue {
  double bytes_per_s = 1e9;
  double latency_s = 0, request_s = 0;
  uint64_t request_bytes = 512 * 1024;
  uint32_t depth = 32;
};

// Slots are of two kinds: for what comes in order, and for what is known only when it is wanted (experts).
struct Claim {
  uint32_t slots = 0;
  uint64_t bytes = 0;
  uint32_t demand_slots = 0;
};

struct Op {
  Lane lane = Lane::compute;
  BlockId block = 0;
  double seconds = 0;          // in its lane
  uint64_t bytes = 0;          // that it reads
  bool from_storage = false;   // takes as long as the storage queue needs for `bytes`, not `seconds`
  uint32_t requests = 0;       // that it is read in; 0: as many as the queue's size of requests makes
  bool needs_driver = false;   // excluded by others that do
  Claim take, give;            // at its begin, at its end
  const char* name = nullptr;  // of work that is none on the block itself, a string literal: for traces
};

struct SimLimits {
  uint32_t slots = std::numeric_limits<uint32_t>::max();
  uint64_t bytes = std::numeric_limits<uint64_t>::max();  // capacity of the tier that blocks are loaded into
  StorageQueue storage;
  uint32_t demand_slots = std::numeric_limits<uint32_t>::max();
};

struct OpTime {
  double begin = 0, end = 0;
};

struct SimResult {
  std::vector<OpTime> times;  // by OpId
  double makespan = 0;
  std::array<double, kLanes> busy{};  // by Lane; read: with at least one request under way
  uint64_t peak_bytes = 0, read_bytes = 0;
  double waited = 0;  // the compute lane stood still after its first operation began
};

class EventSim {
 public:
  explicit EventSim(const SimLimits& limits) : limits_(limits) {}

  OpId add(const Op& op, std::initializer_list<OpId> after = {});
  void after(OpId op, OpId before);  // one more that must be over
  size_t size() const { return ops_.size(); }
  const Op& op(OpId id) const { return ops_[id]; }

  // A bug if some operation can never start (a claim larger than the limits).
  SimResult run() const;

 private:
  SimLimits limits_;
  std::vector<Op> ops_;
  std::vector<std::vector<OpId>> next_;  // that wait for an operation
  std::vector<uint32_t> waits_;          // how many an operation waits for
};

}  // namespace ridge::sim
