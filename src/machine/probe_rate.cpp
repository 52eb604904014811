#include "machine/probe_rate.h"

#include <algorithm>
#include <atomic>

#include "machine/cpu_time.h"
#include "machine/probe_stats.h"

namespace ridge {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

Timed time_together(ThreadPool& pool, FunctionRef<void(int worker)> job) {
  constexpr double kLost = 0.02;
  struct Worker {
    Clock::time_point start, end;
    double cpu_s = 0;
  };
  std::vector<Worker> workers(static_cast<size_t>(pool.size()));
  std::atomic<int> arrived{0};
  pool.run([&](int worker) {
    Worker& w = workers[static_cast<size_t>(worker)];
    arrived.fetch_add(1);
    while (arrived.load() < pool.size()) {
    }
    const double cpu = thread_cpu_seconds();
    w.start = Clock::now();
    job(worker);
    w.end = Clock::now();
    w.cpu_s = thread_cpu_seconds() - cpu;
  });
  auto first = workers.front().start, last = workers.front().end;
  for (const Worker& w : workers) first = std::min(first, w.start), last = std::max(last, w.end);
  Timed timed{.seconds = std::max(seconds_between(first, last), 1e-9)};
  for (const Worker& w : workers) {
    const double lost = seconds_between(first, w.end) - w.cpu_s;
    timed.disturbed = timed.disturbed || lost > kLost * timed.seconds;
  }
  return timed;
}

RoundsPlan full_rounds() { return {.sittings = 5, .samples = 2, .more = 3, .run_time = std::chrono::milliseconds(5)}; }

RoundsPlan quick_rounds() { return {.sittings = 3, .samples = 2, .more = 3, .run_time = std::chrono::milliseconds(2)}; }

bool Rounds::next() {
  ++sitting_;
  if (sitting_ <= plan_.sittings) return true;
  if (sitting_ > plan_.most()) return false;
  for (size_t i = 0; i < figures_.size(); ++i) {
    if (wanted(i)) return true;
  }
  return false;
}

bool Rounds::wanted(size_t figure) const { return sitting_ <= plan_.sittings || !settled(result(figure)); }

void Rounds::sample(size_t figure, double amount, FunctionRef<Timed(uint64_t passes)> timed) {
  const double target = std::chrono::duration<double>(plan_.run_time).count();
  Figure& f = figures_[figure];
  // Where others had the CPU at the first turn a single pass seemed to fill a sample: a later one shows that it does
  // not.
  constexpr uint64_t kMost = 1u << 30;
  for (double took = timed(f.passes).seconds; took < target / 2 && f.passes < kMost; took = timed(f.passes).seconds) {
    const double more = std::clamp(1.1 * target / std::max(took, 1e-7), 2.0, 100.0);
    f.passes = static_cast<uint64_t>(static_cast<double>(f.passes) * more) + 1;
    f.rates.clear();
    f.disturbed.clear();
  }
  for (int s = 0; s < plan_.samples; ++s) {
    const Timed t = timed(f.passes);
    (t.disturbed ? f.disturbed : f.rates).push_back(amount * static_cast<double>(f.passes) / t.seconds);
  }
}

Measured Rounds::result(size_t figure) const {
  const Figure& f = figures_[figure];
  if (f.rates.size() >= kLeastSamples || f.disturbed.empty()) return summarize(f.rates);
  std::vector<double> all = f.rates;
  all.insert(all.end(), f.disturbed.begin(), f.disturbed.end());
  Measured measured = summarize(all);
  measured.runs = std::max(1, static_cast<int>(f.rates.size()));  // too few to have settled, however alike
  return measured;
}

}  // namespace ridge
