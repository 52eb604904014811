// The loops behind copy, triad and latency, compiled for each vector width as the read loops are.
//
//   StreamLoops loops = best_stream_loops(cpu_info().features);
//   loops.copy(to, from, count);
#pragma once

#include <cstddef>
#include <cstdint>

#include "machine/cpu.h"

namespace ridge {

struct StreamLoops {
  void (*copy)(double* to, const double* from, size_t count);
  void (*triad)(double* to, const double* a, const double* b, size_t count);  // to = a + 3 b
  // The copy with stores past the caches: no line is read in order to be overwritten. nullptr where there are none.
  void (*streaming_copy)(double* to, const double* from, size_t count);
};
// `count` is a multiple of 8, pointers are aligned to 64 bytes.
StreamLoops best_stream_loops(CpuFeatures features);

}  // namespace ridge
