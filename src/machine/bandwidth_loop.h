// The read-only loop behind the memory roof: sums 64-bit words with four independent accumulators, compiled for each
// vector width, so that the memory limits it and not the adding.
//
// Not for: computing anything; the sum only keeps the loads alive.
//
//   ReadLoop loop = best_read_loop(cpu_info().features);
//   uint64_t sum = loop(words, count);       // count: a multiple of kReadLoopWords
#pragma once

#include <cstddef>
#include <cstdint>

#include "machine/cpu.h"

namespace ridge {

inline constexpr size_t kReadLoopWords = 128;

using ReadLoop = uint64_t (*)(const uint64_t* words, size_t count);

// The widest loop that a CPU with these features can run.
ReadLoop best_read_loop(CpuFeatures features);

// The same sum in one stream that fetches 2 KiB ahead, as the kernels do. Which of the two reads a large footprint
// faster depends on the machine's own prefetchers.
ReadLoop fetching_read_loop(CpuFeatures features);

}  // namespace ridge
