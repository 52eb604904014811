// Which of several kernels is fastest here, found by running them: some CPUs have an instruction and are slower with
// it.
//
// Not for: benchmarks (bench/), or kernels whose results must not depend on the machine: only those that
// `--numerics fast` may exchange for one another.
//
//   const Kernel* best = fastest_matmul(candidates);      // candidates of one operation and type, able to run here
#pragma once

#include <span>

#include "kernels/choose.h"

namespace ridge {

// The matmul_float kernel that multiplies 64 tokens by 128 rows × 1024 columns in the least time, best of five tries in
// turn; a few milliseconds in all. `candidates` is not empty.
const Kernel* fastest_matmul(std::span<const Kernel* const> candidates);

}  // namespace ridge
