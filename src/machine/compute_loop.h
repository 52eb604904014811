// The compute peaks of one core: loops of independent multiply-adds on registers alone, in assembly, so that no
// compiler spills or folds them. int8 operations and f32 ones; a multiply-add is two.
//
// Not for: what a kernel reaches (those also load, scale and store).
//
//   ComputeLoop loop = int8_loop(cpu_info().features);
//   loop.run(1000);                              // 1000 × loop.operations
#pragma once

#include <cstdint>

#include "machine/cpu.h"

namespace ridge {

struct ComputeLoop {
  void (*run)(uint64_t rounds) = nullptr;  // nullptr: no such loop for this CPU
  uint64_t operations = 0;                 // of one round
};

// The widest that a CPU with these features can run: VNNI dot products, or AVX2's multiply-adds of bytes and words; dot
// products or matrix multiply-accumulate on Arm.
ComputeLoop int8_loop(CpuFeatures features);
// Fused multiply-adds.
ComputeLoop float_loop(CpuFeatures features);

}  // namespace ridge
