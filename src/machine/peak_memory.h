// The highest resident memory of this process since a moment of one's choice, so that several measurements in one
// process each get a peak of their own.
//
// Not for: the limit itself (memory_limits.h).
//
//   reset_peak_memory();
//   …
//   uint64_t peak = peak_memory();      // bytes, page tables included
#pragma once

#include <cstdint>

namespace ridge {

// Begins anew. False where the kernel does not permit it: then the peak is of the whole process.
bool reset_peak_memory();
uint64_t peak_memory();
// Now, without page tables: cheap enough for once per pass (a few µs). 0 where the kernel does not tell.
uint64_t resident_memory();

}  // namespace ridge
