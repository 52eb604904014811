#include "machine/stream_probe.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/splitmix.h"
#include "base/thread_pool.h"
#include "base/units.h"
#include "machine/cpu.h"
#include "machine/probe_memory.h"
#include "machine/probe_rate.h"
#include "machine/stream_loop.h"

namespace ridge {
namespace {

constexpr uint64_t kLine = 64;
constexpr uint64_t kFirst = 64 * kKiB, kLargest = 256 * kMiB;
constexpr size_t kStep = 512;  // doubles: a page

// A cycle through every line of the footprint in an order that no prefetcher knows (Sattolo's shuffle).
void make_cycle(uint64_t* words, size_t lines) {
  constexpr size_t kWords = kLine / sizeof(uint64_t);
  uint64_t state = 1;
  std::vector<uint32_t> order(lines);
  for (size_t i = 0; i < lines; ++i) order[i] = static_cast<uint32_t>(i);
  for (size_t i = lines - 1; i > 0; --i) std::swap(order[i], order[splitmix64(state) % i]);
  for (size_t i = 0; i < lines; ++i) words[order[i] * kWords] = order[(i + 1) % lines] * kWords;
}

// Loads per second, one after the other.
void sample_latency(uint64_t* words, uint64_t footprint, size_t index, Rounds& rounds) {
  constexpr uint64_t kLoads = 4096;
  make_cycle(words, footprint / kLine);
  volatile uint64_t sink = 0;
  ThreadPool alone({.threads = 1});
  rounds.sample(index, kLoads, [&](uint64_t passes) {
    return time_together(alone, [&](int) {
      uint64_t at = sink;
      for (uint64_t i = 0; i < passes * kLoads; ++i) at = words[at];
      sink = at;
    });
  });
}

// The slowest rate is the longest wait.
Measured nanoseconds(const Measured& per_s) {
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

struct StreamFigure {
  StreamKind kind = StreamKind::copy;
  uint64_t footprint = 0;
  int threads = 1;
  size_t count() const { return footprint / static_cast<uint64_t>(threads) / 3 / sizeof(double) / kStep * kStep; }
};

std::vector<StreamFigure> figures_of(const StreamPlan& plan) {
  const bool streaming = best_stream_loops(cpu_info().features).streaming_copy != nullptr;
  std::vector<StreamFigure> figures;
  for (int threads : plan.threads) {
    for (uint64_t footprint : plan.footprints) {
      for (StreamKind kind : {StreamKind::copy, StreamKind::triad, StreamKind::streaming_copy}) {
        const StreamFigure figure{kind, footprint, threads};
        if (figure.count() > 0 && (kind != StreamKind::streaming_copy || streaming)) figures.push_back(figure);
      }
    }
  }
  return figures;
}

void sample_stream(ThreadPool& pool, const ProbeMemory& memory, const StreamFigure& figure, size_t index,
                   Rounds& rounds) {
  const StreamLoops loops = best_stream_loops(cpu_info().features);
  const size_t count = figure.count();
  const double streams = figure.kind == StreamKind::triad ? 3 : 2;
  const double bytes = streams * static_cast<double>(count * sizeof(double)) * figure.threads;
  rounds.sample(index, bytes * 1e-9, [&](uint64_t passes) {
    return time_together(pool, [&](int worker) {
      const Arrays x = arrays_of(memory, worker, figure.threads, count);
      for (uint64_t p = 0; p < passes; ++p) {
        if (figure.kind == StreamKind::copy) loops.copy(x.to, x.a, count);
        if (figure.kind == StreamKind::triad) loops.triad(x.to, x.a, x.b, count);
        if (figure.kind == StreamKind::streaming_copy) loops.streaming_copy(x.to, x.a, count);
      }
    });
  });
}

}  // namespace

StreamPlan stream_plan(const ReadPlanOptions& options) {
  StreamPlan plan;
  const uint64_t most = std::min(options.most_bytes, kLargest);
  for (uint64_t bytes = kFirst; bytes < most; bytes *= options.quick ? 16 : 4) plan.footprints.push_back(bytes);
  if (most >= kFirst) plan.footprints.push_back(most);
  plan.threads = {1};
  if (options.threads > 1) plan.threads.push_back(options.threads);
  plan.rounds = options.quick ? quick_rounds() : full_rounds();
  return plan;
}

uint64_t point_count(const StreamPlan& plan) {
  return (figures_of(plan).size() + plan.footprints.size()) * static_cast<uint64_t>(plan.rounds.most());
}

Result<StreamResults> measure_streams(const StreamPlan& plan, Progress& bar) {
  StreamResults results;
  if (plan.footprints.empty()) return results;  // reads already said that there is no memory
  const std::vector<int> cpus = usable_cpus();
  const std::vector<StreamFigure> figures = figures_of(plan);
  const size_t latencies = figures.size();  // the figures from here on
  Rounds rounds(figures.size() + plan.footprints.size(), plan.rounds);
  while (rounds.next()) {
    ProbeMemory memory(plan.footprints.back());
    RIDGE_TRY(memory.map(PageSize::huge));
    for (int threads : plan.threads) {
      ThreadPool pool({.threads = threads, .cpus = cpus});
      const size_t words = plan.footprints.back() / static_cast<uint64_t>(threads) / sizeof(uint64_t) / kStep * kStep;
      pool.run([&](int worker) { std::fill_n(memory.part(worker, threads), words, 0); });
      for (size_t i = 0; i < figures.size(); ++i) {
        if (figures[i].threads != threads) continue;
        if (rounds.wanted(i)) sample_stream(pool, memory, figures[i], i, rounds);
        bar.advance(1);
      }
    }
    for (size_t i = 0; i < plan.footprints.size(); ++i) {
      if (rounds.wanted(latencies + i)) {
        sample_latency(memory.part(0, 1), plan.footprints[i], latencies + i, rounds);
      }
      bar.advance(1);
    }
  }
  for (size_t i = 0; i < figures.size(); ++i) {
    results.streams.push_back({figures[i].kind, figures[i].footprint, figures[i].threads, rounds.result(i)});
  }
  for (size_t i = 0; i < plan.footprints.size(); ++i) {
    results.latencies.push_back({plan.footprints[i], nanoseconds(rounds.result(latencies + i))});
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
