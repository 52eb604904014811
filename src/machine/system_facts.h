// What the operating system says of itself that matters to a run and that nobody asks for elsewhere: sysctls, swap,
// pressure, huge pages, governors, CPUs, the container. Every fact may be missing: /proc and /sys differ by kernel,
// architecture and container.
//
// Not for: memory limits (memory_limits.h), CPU features (cpu.h), or judging (analyze/doctor.h).
//
//   SystemFacts facts = system_facts();
//   if (facts.io_uring_disabled.value_or(0) != 0) …
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ridge {

// Share of the last ten seconds, in percent, that some task stood still for this (PSI, Linux 4.20).
struct Pressure {
  std::optional<double> memory, cpu, io;
};

struct Governor {
  std::string name;  // "performance", "schedutil", …
  uint32_t cpus = 0;
};

struct SystemFacts {
  std::optional<std::string> kernel;  // "6.1.0-18-amd64"
  std::string container;              // "docker", "podman", "kubernetes", "lxc", "wsl", …; empty: none seen
  std::optional<uint64_t> swap_total, swap_used;
  std::optional<uint64_t> overcommit;               // vm.overcommit_memory
  std::optional<uint64_t> commit_limit, committed;  // bytes; what mode 2 holds to
  std::optional<uint64_t> most_mappings;            // vm.max_map_count
  std::optional<uint64_t> io_uring_disabled;        // kernel.io_uring_disabled
  std::optional<uint64_t> autogroup;                // kernel.sched_autogroup_enabled
  std::optional<uint64_t> address_limit;            // RLIMIT_AS; none: unlimited or unknown
  std::optional<std::string> huge_pages;            // the chosen mode: "always", "madvise", "never"
  Pressure pressure;
  std::vector<Governor> governors;  // by number of CPUs
  std::optional<uint32_t> online_cpus;
  bool cpu_has_amx = false;  // by /proc/cpuinfo, whether or not the system grants its use
};

// Reads under `root`, which tests replace.
SystemFacts system_facts(const std::string& root = "");

// How many CPUs a list such as "0-3,8" names; nothing if it is no such list.
std::optional<uint32_t> cpus_in_list(const std::string& list);

}  // namespace ridge
