// What a run may use and what the machine can do: the same for language and image models.
//
//   Budget budget = choose_budget(options.memory, process_memory());     // budget.bytes, budget.reason
//   Rates rates = machine_rates(profile, threads, footprint);
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/units.h"
#include "machine/memory_limits.h"
#include "machine/profile.h"
#include "plan/pass_model.h"

namespace ridge {

// Charged by the kernel for us but not visible in our own sums: page tables (1/512 of what is mapped), kernel stacks,
// rings, the C library's own buffers.
inline constexpr uint64_t kReserve = 2 * kMiB;
inline constexpr uint64_t kThreadStack = 192 * kKiB;

struct Budget {
  uint64_t bytes = 0;
  std::string reason;  // for refusals: "--memory", or the limit of the machine
};

// The user's wish, or what the machine offers if there is none or it is less (which is then said). What the process
// already holds is part of it.
Budget choose_budget(std::optional<uint64_t> wish, const ProcessMemory& process);

// `footprint`: bytes of weights in memory, which decide what cache they are read from.
Rates machine_rates(const MachineProfile& machine, int threads, uint64_t footprint);

}  // namespace ridge
