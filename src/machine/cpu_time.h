// Time that the calling thread spent on a CPU: what a measurement on a shared machine wants, where nothing is waited
// for.
//
//   double start = thread_cpu_seconds();
#pragma once

#include <time.h>

namespace ridge {

inline double thread_cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace ridge
