#include "tests/format/allocation_count.h"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<size_t> held{0};
std::atomic<size_t> peak{0};

void* counted(void* p) {
  if (p == nullptr) throw std::bad_alloc();
  size_t now = held.fetch_add(malloc_usable_size(p)) + malloc_usable_size(p);
  size_t seen = peak.load();
  while (now > seen && !peak.compare_exchange_weak(seen, now)) {
  }
  return p;
}

void release(void* p) {
  if (p != nullptr) held.fetch_sub(malloc_usable_size(p));
  std::free(p);
}

}  // namespace

// The whole test program allocates through these.
void* operator new(size_t bytes) { return counted(std::malloc(std::max<size_t>(bytes, 1))); }
void* operator new[](size_t bytes) { return counted(std::malloc(std::max<size_t>(bytes, 1))); }
void operator delete(void* p) noexcept { release(p); }
void operator delete[](void* p) noexcept { release(p); }
void operator delete(void* p, size_t) noexcept { release(p); }
void operator delete[](void* p, size_t) noexcept { release(p); }

namespace ridge::test {

AllocationPeak::AllocationPeak() : before_(held.load()) { peak.store(before_); }

size_t AllocationPeak::bytes() const { return peak.load() - before_; }

}  // namespace ridge::test
