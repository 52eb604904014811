#include "machine/probe_rate.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "machine/probe_stats.h"

namespace ridge {

double seconds_together(ThreadPool& pool, FunctionRef<void(int worker)> job) {
  using Clock = std::chrono::steady_clock;
  std::vector<Clock::time_point> starts(static_cast<size_t>(pool.size())), ends(starts);
  std::atomic<int> arrived{0};
  pool.run([&](int worker) {
    arrived.fetch_add(1);
    while (arrived.load() < pool.size()) {
    }
    starts[static_cast<size_t>(worker)] = Clock::now();
    job(worker);
    ends[static_cast<size_t>(worker)] = Clock::now();
  });
  const auto first = *std::min_element(starts.begin(), starts.end());
  const auto last = *std::max_element(ends.begin(), ends.end());
  return std::chrono::duration<double>(last - first).count();
}

Measured measure_rate(const RateRuns& runs, double amount, FunctionRef<double(uint64_t passes)> seconds_of) {
  const double target = std::chrono::duration<double>(runs.run_time).count();
  uint64_t passes = 1;
  for (double took = seconds_of(passes); took < target && passes < (1u << 30); took = seconds_of(passes)) {
    const double more = std::clamp(1.1 * target / std::max(took, 1e-7), 1.5, 100.0);
    passes = static_cast<uint64_t>(static_cast<double>(passes) * more) + 1;
  }
  std::vector<double> rates;
  for (int run = 0; run < runs.runs; ++run) {
    rates.push_back(amount * static_cast<double>(passes) / std::max(seconds_of(passes), 1e-9));
  }
  return summarize(rates);
}

}  // namespace ridge
