// What a moment looks like to those who add memory step by step: this process's share, what the system and the cgroup
// have left, swap, mappings.
//
// Not for: deciding when to stop (plan/memory_gates.h), or the limits of a run (memory_limits.h).
//
//   MemoryState before = memory_state();
//   …
//   int64_t added = growth(before.pss, memory_state().pss);
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "machine/memory_limits.h"

namespace ridge {

struct MemoryState {
  uint64_t pss = 0;         // of this process: pages shared with others count in part
  bool pss_is_rss = false;  // /proc/self/smaps_rollup cannot be read (before Linux 4.14, or hidden): VmRSS stands in
  uint64_t page_tables = 0;
  std::optional<uint64_t> available;  // MemAvailable of the system (MemFree before Linux 3.14)
  std::optional<uint64_t> swap_used;  // of the system
  uint64_t mappings = 0, mapped_bytes = 0;
  CgroupMemory cgroup;

  uint64_t charge() const { return pss + page_tables; }
};

// Reads /proc and /sys under `root`, which tests replace. What cannot be read stays empty or 0.
MemoryState memory_state(const std::string& root = "");

constexpr int64_t growth(uint64_t before, uint64_t after) {
  return static_cast<int64_t>(after) - static_cast<int64_t>(before);
}
std::optional<int64_t> growth(const std::optional<uint64_t>& before, const std::optional<uint64_t>& after);

}  // namespace ridge
