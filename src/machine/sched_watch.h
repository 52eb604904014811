// Did the threads of this process get their CPUs while something was timed? Adds up, over the stretches that are timed,
// how long they stood in run queues (/proc/self/task/*/schedstat) and how often they were switched out against their
// will (getrusage).
//
// Not for: noise that takes no CPU from us, such as a neighbour on the same memory controller.
//
//   SchedWatch watch;
//   watch.start();  … timed …  watch.stop(threads);
//   std::string why = watch.contention();      // empty: nobody was in the way
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace ridge {

struct SchedCounts {
  double queued_s = 0;       // runnable but not running, all threads together; 0 where the kernel does not say
  uint64_t involuntary = 0;  // context switches
};
// `root` stands before /proc, so that tests can bring their own.
SchedCounts sched_counts(const std::string& root = "");

// Why timing is not to be trusted, empty if it is: `counts` are what happened in `thread_s`, elapsed seconds times
// compute threads.
std::string describe_sched(const SchedCounts& counts, double thread_s);

class SchedWatch {
 public:
  void start();
  void stop(int threads);
  const SchedCounts& counts() const { return total_; }
  double thread_s() const { return thread_s_; }
  std::string contention() const { return describe_sched(total_, thread_s_); }

 private:
  SchedCounts before_, total_;
  double thread_s_ = 0;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace ridge
