// When to stop adding memory: before the system swaps, before it has too little left, before a limit ends the process.
// The document's gate (MemAvailable below 1.5 GiB, or more than 16 MiB of new swap), and the limits it did not have to
// know: of the cgroup, and a budget of the user's.
//
// Not for: measuring (machine/memory_state.h), or planning within a budget (planner.h).
//
//   MemoryGates gates({.available = 2 * kGiB}, memory_state());        // the base line
//   if (auto why = gates.before(next_bytes, memory_state())) …         // would it pass a gate?
//   if (auto why = gates.after(memory_state())) …                      // has it passed one?
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/units.h"
#include "machine/memory_state.h"

namespace ridge {

struct GateOptions {
  uint64_t available = 3 * kGiB / 2;  // stop when the system has less than this left
  uint64_t swap = 16 * kMiB;          // stop when more than this was swapped out since the base line
  uint64_t cgroup_left = 32 * kMiB;   // stop when the cgroup grants less than this; beyond its limit waits SIGKILL
  std::optional<uint64_t> budget;     // stop when the process holds more than this
};

class MemoryGates {
 public:
  MemoryGates(const GateOptions& options, const MemoryState& baseline) : options_(options), baseline_(baseline) {}

  // One sentence on the gate that `bytes` more would pass, or nothing. Swap cannot be foreseen.
  std::optional<std::string> before(uint64_t bytes, const MemoryState& now) const;
  // One sentence on the gate that is passed.
  std::optional<std::string> after(const MemoryState& now) const;

  // What the tightest of the gates leaves from the base line on, and which one that is; UINT64_MAX if none can be told.
  struct Room {
    uint64_t bytes = 0;
    std::string gate;
  };
  Room room() const;

 private:
  GateOptions options_;
  MemoryState baseline_;
};

}  // namespace ridge
