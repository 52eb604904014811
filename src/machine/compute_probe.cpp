#include "machine/compute_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <vector>

#include "machine/cpu.h"
#include "machine/cpu_time.h"
#include "machine/probe_rate.h"

namespace ridge {
namespace {

struct Gauge {
  const ComputeLoop* loop;
  int threads;
};

// Of one core, without tiles: kernels that use those are limited by other things (docs/planning.md).
double peak_of_a_core(const MachineProfile& profile, std::string_view type) {
  const std::string_view isa = best_loop(type, cpu_info().features.without(kAmxInt8 | kAmxBf16)).isa;
  for (const PeakPoint& p : profile.peaks) {
    if (p.type == type && p.isa == isa && p.threads == 1) return p.gops.value;
  }
  return 0;
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

// The clock is looked at in every sitting: its highest is what the peaks are held against.
Result<void> measure_compute(const ComputePlan& plan, MachineProfile& profile) {
  std::vector<int> counts = {1};
  if (plan.threads > 1) counts.push_back(plan.threads);
  std::vector<Gauge> gauges;
  for (int threads : counts) {
    for (const ComputeLoop& loop : compute_loops()) {
      if (cpu_info().features.has_all(loop.needs)) gauges.push_back({&loop, threads});
    }
  }
  const RoundsPlan timing = plan.quick ? quick_rounds() : full_rounds();
  const double seconds = std::chrono::duration<double>(timing.run_time).count() / 2;
  Rounds rounds(gauges.size(), timing);
  profile.clock_ghz_before = measure_clock_ghz();
  double highest = 0;
  while (rounds.next()) {
    for (int threads : counts) {
      ThreadPool pool({.threads = threads, .cpus = usable_cpus()});
      for (size_t i = 0; i < gauges.size(); ++i) {
        if (gauges[i].threads != threads || !rounds.wanted(i)) continue;
        (void)peak_gops(pool, *gauges[i].loop, seconds / 4);  // wakes the workers, and the units that sleep
        for (int s = 0; s < timing.samples; ++s) rounds.add(i, peak_gops(pool, *gauges[i].loop, seconds));
      }
    }
    highest = std::max(highest, measure_clock_ghz());
  }
  profile.clock_ghz_after = measure_clock_ghz();
  for (size_t i = 0; i < gauges.size(); ++i) {
    const ComputeLoop& loop = *gauges[i].loop;
    profile.peaks.push_back({std::string(loop.type), std::string(loop.isa), gauges[i].threads, rounds.result(i)});
  }
  profile.int8_gops_per_core = peak_of_a_core(profile, "int8");
  profile.float_gops_per_core = peak_of_a_core(profile, "f32");
  return check_peaks(profile, highest);
}

Result<void> check_peaks(const MachineProfile& profile, double seen_ghz) {
  constexpr double kTolerance = 1.05;  // two clocks and a turbo between them
  const double ghz = std::max({profile.clock_ghz_before, profile.clock_ghz_after, seen_ghz});
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
