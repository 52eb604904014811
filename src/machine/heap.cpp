#include "machine/heap.h"

#include <malloc.h>

namespace ridge {

void tune_heap() {
#if defined(__GLIBC__)
  // Every thread would otherwise reserve an arena, and blocks below the moving threshold would never be returned.
  constexpr int kBlockOfItsOwn = 128 * 1024;
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_MMAP_THRESHOLD, kBlockOfItsOwn);
  mallopt(M_TRIM_THRESHOLD, kBlockOfItsOwn);
#endif
}

void trim_heap() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

}  // namespace ridge
