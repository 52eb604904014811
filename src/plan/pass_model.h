// How long a pass takes, by counting: what each visit computes and reads, the bound that no schedule can beat, and the
// time of the schedule that a weight source follows (reads in order, two slots, read-ahead from the last visit to the
// first).
//
// Not for: deciding (placement.h, planner.h), or policies and devices in general (sim/).
//
//   PassModel decode(program, rates, 1);
//   double s = decode.seconds({.pinned = placement.pinned});          // of the pass, once it repeats itself
//   Bound b = decode.bound({.pinned = placement.pinned});
//
// Thread-safe: immutable once built.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "program/program.h"

namespace ridge {

// What the plan expects of the machine: bytes and operations per second. Measured by `ridge probe` where it has run.
struct Rates {
  double storage = 1.0e9;
  double memory = 10.0e9;
  double rearrange = 8.0e9;                                // rows to panels, all compute threads
  double block_overhead_s = 80e-6;                         // of one streamed block: submit, wake, the device's latency
  double int8_ops = 0, float_ops = 0;                      // of the kernels, all threads; 0: not known, does not limit
  bool storage_measured = false, memory_measured = false;  // by ridge probe, else assumed
  std::string contention;  // why what was measured is not to be trusted: others used the machine; else empty
  bool measured() const { return storage_measured && memory_measured; }
};
// Where a rate is from, in a word: "measured", "assumed", or "contended" if it was measured beside others.
const char* rate_word(const Rates& rates, bool measured);
// "rates were measured while others used the machine (why): run `ridge probe` again". Of contended rates.
std::string contention_sentence(const Rates& rates);

// T* of a pass: no schedule can be faster (docs/planning.md).
struct Bound {
  double storage_s = 0, memory_s = 0, rearrange_s = 0;  // the last: computing, with rearranging of streamed rows
  double seconds() const;
};

// What of a placement a pass's time depends on.
struct PassPlacement {
  std::span<const uint8_t> pinned;  // by BlockId
  uint32_t slots = 2;
  double expert_hits = 0;  // share of visits to unpinned experts that find them in a slot
};

// One visit, in seconds. Of an expert: as expected, times the chance of a visit.
struct VisitTime {
  BlockId block = 0;
  bool on_demand = false;
  double compute = 0;    // on panels in memory
  double rearrange = 0;  // more, where rows are streamed
  double read = 0;       // where it is not in memory
  double latency = 0;    // part of `read` that does not depend on bytes
};

class PassModel {
 public:
  // `tokens` per pass. `counted` says for how many tokens the program was made: for one (its costs count `tokens`
  // times, chances are of a pass of that many), or for this pass.
  PassModel(const Program& program, const Rates& rates, uint32_t tokens, uint32_t counted = 1);

  // Of a pass in the middle of many: reads follow one another, a streamed visit's read begins when the read before it
  // is over and the visit `slots` streamed ones before it is computed. Experts are read when their layer is reached.
  double seconds(const PassPlacement& placement) const;
  // Where the pass waits: seconds by visit.
  std::vector<double> waits(const PassPlacement& placement) const;

  Bound bound(const PassPlacement& placement) const;
  double compute_seconds(const PassPlacement& placement) const;
  double read_seconds(const PassPlacement& placement) const;  // latencies included
  const std::vector<VisitTime>& visits() const { return visits_; }

 private:
  class Walk;
  bool stays(const PassPlacement& placement) const;
  double read_share(const VisitTime& visit, const PassPlacement& placement, bool stays) const;
  double read_of(const VisitTime& visit, const PassPlacement& placement) const;

  std::vector<VisitTime> visits_;
  double storage_rate_, memory_rate_;
  std::vector<double> memory_bytes_, storage_bytes_;  // by visit, as expected
};

// The chance that a pass of this many tokens visits a block: experts are taken to be chosen alike, and independently by
// each token.
double chance_of(const Visit& visit, uint32_t tokens);

}  // namespace ridge
