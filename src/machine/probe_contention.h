// Did others use the CPUs while something was measured? Compares the kernel's account of all CPUs (/proc/stat) with
// this process's own time, and counts stolen time where the hypervisor reports it.
//
// Not for: noise that never shows up as CPU time, such as a neighbour on the same memory controller; the spread of
// repeated runs (probe_stats.h) shows that one.
//
//   CpuWatch watch;
//   … measure …
//   std::string why = watch.contention();      // empty: nobody else was busy
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace ridge {

// CPU seconds since boot, over all CPUs.
struct CpuTimes {
  double busy_s = 0;  // user, nice, system, interrupts
  double stolen_s = 0;
};

// The first line of /proc/stat; nullopt if it does not look like one.
std::optional<CpuTimes> parse_proc_stat(std::string_view text, double ticks_per_s);

// Why a measurement of `elapsed_s` is not to be trusted, empty if it is: `others_s` and `stolen_s` are CPU seconds.
std::string describe_contention(double elapsed_s, double others_s, double stolen_s);

class CpuWatch {
 public:
  CpuWatch();
  // Since construction. Empty too where /proc/stat cannot be read.
  std::string contention() const;

 private:
  std::optional<CpuTimes> system_;
  double own_s_ = 0;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace ridge
