// How much memory this process may use, and how much it uses: cgroup v1 and v2 with ancestors, MemAvailable,
// RLIMIT_MEMLOCK, /proc/self. Files are read under a root that tests replace.
//
//   MemoryLimits limits = memory_limits();
//   uint64_t budget = limits.available;      // with limits.reason: "cgroup /sys/fs/cgroup/memory/box: 512 MiB limit"
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace ridge {

struct MemoryLimits {
  uint64_t available = 0;     // bytes this process may still add, by the tightest of all limits
  std::string reason;         // which limit that is, for people
  uint64_t locked_limit = 0;  // RLIMIT_MEMLOCK, UINT64_MAX if unlimited
};

// Over the cgroup of this process and its ancestors: limit (or high) − (usage − inactive_file − slab_reclaimable);
// and MemAvailable. `root` is prepended to /proc and /sys.
MemoryLimits memory_limits(const std::string& root = "");

// What the kernel charges to this process now.
struct ProcessMemory {
  uint64_t resident = 0;       // VmRSS
  uint64_t peak_resident = 0;  // VmHWM
  uint64_t anonymous = 0;      // RssAnon
  uint64_t page_tables = 0;    // VmPTE
  uint64_t mapped_files =
      0;  // whole size of every distinct file mapped (program and libraries), as if all of it were cached
};
ProcessMemory process_memory(const std::string& root = "");

// What the memory cgroups of this process hold and still grant, for those who watch both while memory is added.
struct CgroupMemory {
  std::optional<uint64_t> charged;  // to the process's own cgroup; none without one
  std::optional<uint64_t> left;     // until the tightest limit of it and its ancestors; none without a limit
  std::string reason;               // which limit that is, for people
};
CgroupMemory cgroup_memory(const std::string& root = "");

// The highest charge of this process's own cgroup since it was made (memory.peak, max_usage_in_bytes), 0 if unknown.
uint64_t cgroup_peak(const std::string& root = "");

// Signs that memory is short, for those who can give some back while they run.
struct MemoryPressure {
  std::optional<uint64_t> available;  // MemAvailable of the system
  // Until the tightest limit of the cgroups of this process, file pages that the kernel can drop left out.
  std::optional<uint64_t> cgroup_left;
  uint64_t limit_hits = 0;  // how often the cgroups of this process hit a limit (or high), since they were made
  double stalled = 0;       // share of the last 10 s in which all tasks waited for memory (PSI, "full"); 0 if unknown
};
MemoryPressure memory_pressure(const std::string& root = "");

}  // namespace ridge
