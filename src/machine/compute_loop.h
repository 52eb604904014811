// The compute peaks of one core: loops of independent multiply-adds on registers alone, in assembly, so that no
// compiler spills or folds them; one for each type of number and each extension of the instruction set that has it.
//
// Not for: what a kernel reaches (those also load, scale and store).
//
//   for (const ComputeLoop& loop : compute_loops())
//     if (cpu_info().features.has_all(loop.needs)) loop.run(1000);      // 1000 × loop.operations
//   ComputeLoop widest = best_loop("int8", cpu_info().features);
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "machine/cpu.h"

namespace ridge {

struct ComputeLoop {
  std::string_view type;                   // "f32", "f16", "bf16", "int8"
  std::string_view isa;                    // "scalar", "avx2", …, "amx-int8", as feature_names() has them
  CpuFeatures needs;                       // to run it
  void (*run)(uint64_t rounds) = nullptr;  // nullptr: no such loop for this CPU
  uint64_t operations = 0;                 // of one round; a multiply-add is two
  uint64_t instructions = 0;               // multiply-adds of one round
  double per_cycle = 0;                    // of them that a core begins in a cycle at most
};

// All of this architecture: of each type from the narrowest to the widest.
std::span<const ComputeLoop> compute_loops();
const ComputeLoop* find_loop(std::string_view type, std::string_view isa);  // nullptr if there is none

// The widest of a type that a CPU with these features can run; without `run` if there is none.
ComputeLoop best_loop(std::string_view type, CpuFeatures features);

// What the width of a loop's instructions allows in a cycle.
double most_operations_per_cycle(const ComputeLoop& loop);

// 1e9 cycles per second: a chain of additions, each of which needs the one before and takes one cycle. Best of a few
// tries of half a millisecond.
double measure_clock_ghz();

}  // namespace ridge
