// Memory to measure in: one mapping of one page size, in which each worker has a part of its own.
//
//   ProbeMemory memory(1 << 30);
//   RIDGE_TRY(memory.map(PageSize::huge));
//   uint64_t* mine = memory.part(worker, workers);
//   if (!memory.has_huge_pages()) …              // after it was touched
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "base/units.h"
#include "machine/bandwidth.h"

namespace ridge {

// Unmapped by the destructor.
class ProbeMemory {
 public:
  explicit ProbeMemory(uint64_t bytes);
  ~ProbeMemory();
  ProbeMemory(const ProbeMemory&) = delete;
  ProbeMemory& operator=(const ProbeMemory&) = delete;

  Result<void> map(PageSize pages);
  // Where the part of a worker begins: they lie as far apart as they can.
  uint64_t* part(int worker, int workers) const;
  // Whether most of what was touched lies in huge pages, by the kernel's own account.
  bool has_huge_pages() const;

 private:
  uint64_t usable_, bytes_;
  void* mapping_ = MAP_FAILED;
  std::byte* begin_ = nullptr;  // at a huge page
};

}  // namespace ridge
