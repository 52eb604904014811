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
  uint64_t instructions = 0;               // multiply-adds of one round
};

// The widest that a CPU with these features can run: VNNI dot products, or AVX2's multiply-adds of bytes and words; dot
// products or matrix multiply-accumulate on Arm.
ComputeLoop int8_loop(CpuFeatures features);
// Fused multiply-adds.
ComputeLoop float_loop(CpuFeatures features);
// Dot products of bf16 pairs; not every CPU has them.
ComputeLoop bf16_loop(CpuFeatures features);

// Operations of one instruction of a loop, and how many a core may begin in a cycle: what clock × width allows.
double most_operations_per_cycle(const ComputeLoop& loop);

// 1e9 cycles per second: a chain of additions, each of which needs the one before and takes one cycle. Best of a few
// tries of half a millisecond.
double measure_clock_ghz();

}  // namespace ridge
