#include "machine/compute_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "machine/cpu.h"
#include "machine/cpu_time.h"
#include "machine/probe_stats.h"

namespace ridge {
namespace {

constexpr double kSeconds = 2e-3;  // of a sample

struct Gauge {
  const ComputeLoop* loop;
  size_t pool;  // index
  std::vector<double> samples = {};
};

// Of one core, without tiles: kernels that use those are limited by other things (docs/planning.md).
double best_of_a_core(const std::vector<Gauge>& gauges, std::string_view type) {
  const CpuFeatures vectors = cpu_info().features.without(kAmxInt8 | kAmxBf16);
  double best = 0;
  for (const Gauge& g : gauges) {
    if (g.pool != 0 || g.loop->type != type || !vectors.has_all(g.loop->needs)) continue;
    best = std::max(best, *std::max_element(g.samples.begin(), g.samples.end()));
  }
  return best;
}

}  // namespace

double peak_gops(ThreadPool& pool, const ComputeLoop& loop, double seconds) {
  constexpr uint64_t kRounds = 5000;
  if (loop.run == nullptr) return 0;
  std::vector<double> rates(static_cast<size_t>(pool.size()));
  pool.run([&](int worker) {
    const double start = thread_cpu_seconds();
    double taken = 0;
    uint64_t rounds = 0;
    for (; taken < seconds; rounds += kRounds, taken = thread_cpu_seconds() - start) loop.run(kRounds);
    rates[static_cast<size_t>(worker)] = static_cast<double>(rounds * loop.operations) / taken / 1e9;
  });
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

// Every loop has its turn in every round, so that a minute in which the clock is low does not hit one of them alone.
// The first round warms the clock and does not count.
Result<void> measure_compute(const ComputePlan& plan, MachineProfile& profile) {
  std::vector<int> counts = {1};
  if (plan.threads > 1) counts.push_back(plan.threads);
  std::vector<Gauge> gauges;
  for (const ComputeLoop& loop : compute_loops()) {
    if (!cpu_info().features.has_all(loop.needs)) continue;
    for (size_t pool = 0; pool < counts.size(); ++pool) gauges.push_back({.loop = &loop, .pool = pool});
  }
  profile.clock_ghz_before = measure_clock_ghz();
  const int rounds = plan.quick ? 5 : 15;
  for (int round = -1; round < rounds; ++round) {
    for (size_t p = 0; p < counts.size(); ++p) {
      ThreadPool pool({.threads = counts[p], .cpus = usable_cpus()});
      for (Gauge& g : gauges) {
        if (g.pool != p) continue;
        const double gops = peak_gops(pool, *g.loop, kSeconds);
        if (round >= 0) g.samples.push_back(gops);
      }
    }
  }
  profile.clock_ghz_after = measure_clock_ghz();
  for (const Gauge& g : gauges) {
    profile.peaks.push_back(
        {std::string(g.loop->type), std::string(g.loop->isa), counts[g.pool], summarize(g.samples)});
  }
  profile.int8_gops_per_core = best_of_a_core(gauges, "int8");
  profile.float_gops_per_core = best_of_a_core(gauges, "f32");
  return check_peaks(profile);
}

Result<void> check_peaks(const MachineProfile& profile) {
  constexpr double kTolerance = 1.05;  // two clocks and a turbo between them
  const double ghz = std::max(profile.clock_ghz_before, profile.clock_ghz_after);
  if (ghz <= 0) return {};
  for (const PeakPoint& p : profile.peaks) {
    const ComputeLoop* loop = find_loop(p.type, p.isa);
    if (loop == nullptr) continue;
    const double most = ghz * most_operations_per_cycle(*loop) * p.threads;
    if (p.gops.value <= kTolerance * most) continue;
    return Error{
        ErrorCode::bug,
        fmt::format("probe: {:.0f} Gop/s of {} by {} on {} threads are above the {:.0f} that a clock of {:.2f} "
                    "GHz and the width of its instructions allow: the clock rose meanwhile, or contention hid "
                    "its height, or this is a bug; measure again on an idle machine",
                    p.gops.value, p.type, p.isa, p.threads, most, ghz)};
  }
  return {};
}

}  // namespace ridge
