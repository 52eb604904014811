#include "machine/sched_watch.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace ridge {
namespace {

// Timer ticks and kernel threads alone take about 0.1 %; two programs on one CPU take 50 %.
constexpr double kQueuedAllowed = 0.02;
// A quiet machine shows a few per second.
constexpr double kSwitchesAllowed = 50;

}  // namespace

SchedCounts sched_counts(const std::string& root) {
  SchedCounts counts;
  std::error_code error;
  std::filesystem::directory_iterator tasks(root + "/proc/self/task", error);
  for (; !error && tasks != std::filesystem::directory_iterator(); tasks.increment(error)) {
    // Time on the CPU, time in the run queue (both ns), time slices (Documentation/scheduler/sched-stats.rst).
    std::ifstream file(tasks->path() / "schedstat");
    uint64_t ran = 0, queued = 0;
    if (file >> ran >> queued) counts.queued_s += static_cast<double>(queued) * 1e-9;
  }
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  counts.involuntary = static_cast<uint64_t>(usage.ru_nivcsw);
  return counts;
}

std::string describe_sched(const SchedCounts& counts, double thread_s) {
  if (thread_s <= 0) return {};
  // The system books a wait when it ends: a short watch may be told of more than fits into it.
  const double queued = std::min(1.0, counts.queued_s / thread_s);
  if (queued > kQueuedAllowed) return fmt::format("threads waited {:.0f} % of the time for a CPU", queued * 100);
  double switches = static_cast<double>(counts.involuntary) / thread_s;
  if (switches > kSwitchesAllowed) return fmt::format("threads were interrupted {:.0f} times a second", switches);
  return {};
}

void SchedWatch::start() {
  before_ = sched_counts();
  start_ = std::chrono::steady_clock::now();
}

void SchedWatch::stop(int threads) {
  double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  SchedCounts now = sched_counts();
  // A thread that has ended takes its time along.
  total_.queued_s += now.queued_s > before_.queued_s ? now.queued_s - before_.queued_s : 0;
  total_.involuntary += now.involuntary - before_.involuntary;
  thread_s_ += elapsed * threads;
}

}  // namespace ridge
