// Evidence that needs no training: models on machines of tiers, energies of memories, and the visits of students
// through every replacement policy.
//
//   std::vector<MachineCase> cases = RIDGE_TRY(machine_cases(machine, visits));
//   std::vector<TierRatio> ratios = tier_ratios(machine);
//   PolicyHits hits = replay_policies(train, judge, 0.25);
#pragma once

#include <span>

#include "base/result.h"
#include "claims/evidence.h"
#include "sim/npu_machine.h"
#include "sim/recorded_trace.h"

namespace ridge {

// The document's models and one that mobile SRAM can hold a share of, each in int8 (Q8_0) and 4 bit (Q4_0), a token at
// position 512. `visits`: judged text of students with L1, over which the means of the resting methods go; none: they
// are left out. Models that the machine's DRAM does not hold are left out.
Result<std::vector<MachineCase>> machine_cases(const sim::NpuMachine& machine,
                                               std::span<const sim::RecordedTrace> visits);

// DRAM against each SRAM of the machine.
std::vector<TierRatio> tier_ratios(const sim::NpuMachine& machine);

// The policies that are replayed, in the order of PolicyHits::ratios: all that read nothing ahead.
std::vector<std::string> replayed_policies();
// Of `kind` and `seed` nothing is filled in.
PolicyHits replay_policies(const sim::RecordedTrace& train, const sim::RecordedTrace& judge, double cache);

}  // namespace ridge
