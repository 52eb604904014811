#include "machine/stream_probe.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <utility>

#include "base/splitmix.h"
#include "base/thread_pool.h"
#include "base/units.h"
#include "machine/cpu.h"
#include "machine/probe_memory.h"
#include "machine/probe_stats.h"
#include "machine/stream_loop.h"

namespace ridge {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kLine = 64;
constexpr uint64_t kFirst = 64 * kKiB, kLargest = 256 * kMiB;
constexpr size_t kStep = 512;  // doubles: a page

// Seconds in which all workers do job(worker) together, from the first start to the last end.
double together(ThreadPool& pool, FunctionRef<void(int worker)> job) {
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
  return std::chrono::duration<double>(*std::max_element(ends.begin(), ends.end()) -
                                       *std::min_element(starts.begin(), starts.end()))
      .count();
}

// Repetitions of `work` per second, several times over, each for at least the plan's time.
template <class Work>
Measured rates(const StreamPlan& plan, double amount, Work seconds_of) {
  const double target = std::chrono::duration<double>(plan.run_time).count();
  uint64_t passes = 1;
  for (double took = seconds_of(passes); took < target && passes < (1u << 30); took = seconds_of(passes)) {
    passes = static_cast<uint64_t>(static_cast<double>(passes) *
                                   std::clamp(1.1 * target / std::max(took, 1e-7), 1.5, 100.0)) +
             1;
  }
  std::vector<double> samples;
  for (int run = 0; run < plan.runs; ++run) {
    samples.push_back(amount * static_cast<double>(passes) / std::max(seconds_of(passes), 1e-9));
  }
  return summarize(samples);
}

// A cycle through every line of the footprint in an order that no prefetcher knows (Sattolo's shuffle).
void make_cycle(uint64_t* words, size_t lines) {
  constexpr size_t kWords = kLine / sizeof(uint64_t);
  uint64_t state = 1;
  std::vector<uint32_t> order(lines);
  for (size_t i = 0; i < lines; ++i) order[i] = static_cast<uint32_t>(i);
  for (size_t i = lines - 1; i > 0; --i) std::swap(order[i], order[splitmix64(state) % i]);
  for (size_t i = 0; i < lines; ++i) words[order[i] * kWords] = order[(i + 1) % lines] * kWords;
}

Measured latency_ns(const StreamPlan& plan, uint64_t* words, uint64_t footprint) {
  make_cycle(words, footprint / kLine);
  constexpr uint64_t kLoads = 4096;
  volatile uint64_t sink = 0;
  Measured per_s = rates(plan, kLoads, [&](uint64_t passes) {
    const Clock::time_point begin = Clock::now();
    uint64_t at = sink;
    for (uint64_t i = 0; i < passes * kLoads; ++i) at = words[at];
    sink = at;
    return std::chrono::duration<double>(Clock::now() - begin).count();
  });
  // The slowest rate is the longest wait.
  return {.value = 1e9 / per_s.value, .low = 1e9 / per_s.high, .high = 1e9 / per_s.low, .runs = per_s.runs};
}

// Three arrays in each worker's part; a copy uses two.
struct Arrays {
  double *to, *a, *b;
};
Arrays arrays_of(const ProbeMemory& memory, int worker, int workers, size_t count) {
  double* first = static_cast<double*>(static_cast<void*>(memory.part(worker, workers)));
  return {first, first + count, first + 2 * count};
}

void measure_point(ThreadPool& pool, const ProbeMemory& memory, const StreamPlan& plan, uint64_t footprint,
                   std::vector<StreamPoint>& points) {
  const StreamLoops loops = best_stream_loops(cpu_info().features);
  const int workers = pool.size();
  const size_t count = footprint / static_cast<uint64_t>(workers) / 3 / sizeof(double) / kStep * kStep;
  if (count == 0) return;
  auto add = [&](StreamKind kind, double streams, auto loop) {
    const double bytes = streams * static_cast<double>(count * sizeof(double)) * workers;
    Measured m = rates(plan, bytes * 1e-9, [&](uint64_t passes) {
      return together(pool, [&](int worker) {
        const Arrays x = arrays_of(memory, worker, workers, count);
        for (uint64_t p = 0; p < passes; ++p) loop(x);
      });
    });
    points.push_back({kind, footprint, workers, m});
  };
  add(StreamKind::copy, 2, [&](const Arrays& x) { loops.copy(x.to, x.a, count); });
  add(StreamKind::triad, 3, [&](const Arrays& x) { loops.triad(x.to, x.a, x.b, count); });
  if (loops.streaming_copy != nullptr) {
    add(StreamKind::streaming_copy, 2, [&](const Arrays& x) { loops.streaming_copy(x.to, x.a, count); });
  }
}

}  // namespace

StreamPlan stream_plan(const ReadPlanOptions& options) {
  StreamPlan plan;
  const uint64_t most = std::min(options.most_bytes, kLargest);
  for (uint64_t bytes = kFirst; bytes < most; bytes *= options.quick ? 16 : 4) plan.footprints.push_back(bytes);
  if (most >= kFirst) plan.footprints.push_back(most);
  plan.threads = {1};
  if (options.threads > 1) plan.threads.push_back(options.threads);
  plan.runs = options.quick ? 3 : 5;
  plan.run_time = std::chrono::milliseconds(options.quick ? 2 : 5);
  return plan;
}

uint64_t point_count(const StreamPlan& plan) { return plan.footprints.size() * (plan.threads.size() + 1); }

Result<StreamResults> measure_streams(const StreamPlan& plan, Progress& bar) {
  StreamResults results;
  if (plan.footprints.empty()) return results;  // reads already said that there is no memory
  ProbeMemory memory(plan.footprints.back());
  RIDGE_TRY(memory.map(PageSize::huge));
  const std::vector<int> cpus = usable_cpus();
  for (int threads : plan.threads) {
    ThreadPool pool({.threads = threads, .cpus = cpus});
    const size_t words = plan.footprints.back() / static_cast<uint64_t>(threads) / sizeof(uint64_t) / kStep * kStep;
    pool.run([&](int worker) { std::fill_n(memory.part(worker, threads), words, 0); });
    for (uint64_t footprint : plan.footprints) {
      measure_point(pool, memory, plan, footprint, results.streams);
      bar.advance(1);
    }
  }
  for (uint64_t footprint : plan.footprints) {
    results.latencies.push_back({footprint, latency_ns(plan, memory.part(0, 1), footprint)});
    bar.advance(1);
  }
  return results;
}

std::vector<MemoryLevel> find_levels(const MachineProfile& profile) {
  constexpr double kAlike = 0.8;
  const int threads = profile.most_threads();
  std::map<uint64_t, double> rate;  // the better page size
  for (const ReadPoint& p : profile.reads) {
    if (p.threads == threads) rate[p.footprint_bytes] = std::max(rate[p.footprint_bytes], p.gb_per_s.value);
  }
  std::vector<MemoryLevel> levels;
  MemoryLevel run;
  int points = 0;
  auto close = [&] {
    if (points >= 2) levels.push_back(run);
    points = 0;
  };
  for (const auto& [footprint, gb] : rate) {
    if (points > 0 && (gb < kAlike * run.gb_per_s || gb * kAlike > run.gb_per_s)) close();
    if (points == 0) run = {footprint, footprint, gb, threads};
    run.to_bytes = footprint;
    run.gb_per_s = std::max(run.gb_per_s, gb);
    ++points;
  }
  close();
  return levels;
}

}  // namespace ridge
