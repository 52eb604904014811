#include "machine/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <numeric>

#include "base/cache_folder.h"
#include "base/progress.h"
#include "base/thread_pool.h"
#include "base/units.h"
#include "base/utc_now.h"
#include "machine/bandwidth.h"
#include "machine/compute_loop.h"
#include "machine/cpu.h"
#include "machine/cpu_time.h"
#include "machine/memory_limits.h"
#include "machine/probe_contention.h"
#include "machine/probe_stats.h"
#include "machine/storage_probe.h"
#include "machine/stream_probe.h"

namespace ridge {
namespace {

// One point in ten may be unlucky; more of them means that the machine was not quiet.
constexpr double kWideShare = 0.10;

// Why the figures are not to be trusted, empty if they are. Only reads of memory are judged: storage may be shared by
// its nature, and its quartiles stand beside each figure.
std::string contention_of(const std::vector<ReadPoint>& reads, const CpuWatch& watch) {
  std::string why = watch.contention();
  if (!why.empty()) return why;
  auto wide = [](const ReadPoint& point) { return spread(point.gb_per_s) > kWideSpread; };
  auto count = std::count_if(reads.begin(), reads.end(), wide);
  if (static_cast<double>(count) <= kWideShare * static_cast<double>(reads.size())) return {};
  return fmt::format("{} of {} memory figures spread by more than {:.0f} %", count, reads.size(), kWideSpread * 100);
}

// The file that is read; `bytes` of a temporary one.
Result<StorageFile> storage_file(const ProbeOptions& options, uint64_t bytes) {
  if (!options.storage_file.empty()) return StorageFile::open(options.storage_file);
  std::string folder = options.storage_folder;
  if (folder.empty()) {
    folder = cache_folder();
    std::error_code ignored;  // writing the file says why the folder is of no use
    if (!folder.empty()) std::filesystem::create_directories(folder, ignored);
  }
  if (folder.empty())
    return usage_error("this user has no home folder to write a test file to: name one with --folder");
  return StorageFile::temporary(folder, bytes);
}

// 1e9 operations per second of CPU time, summed over the workers.
double peak_of_all(ThreadPool& pool, const ComputeLoop& loop) {
  constexpr double kLeastSeconds = 2e-3;
  constexpr uint64_t kRounds = 5000;
  std::vector<double> rates(static_cast<size_t>(pool.size()));
  pool.run([&](int worker) {
    const double start = thread_cpu_seconds();
    double taken = 0;
    uint64_t rounds = 0;
    for (; taken < kLeastSeconds; rounds += kRounds, taken = thread_cpu_seconds() - start) loop.run(kRounds);
    rates[static_cast<size_t>(worker)] = static_cast<double>(rounds * loop.operations) / taken / 1e9;
  });
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

// 1e9 operations per second of one core, best of a few tries of a millisecond or more; 0 where no loop knows this CPU.
double peak_gops(const ComputeLoop& loop) {
  constexpr int kTries = 5;
  constexpr double kLeastSeconds = 1e-3;
  if (loop.run == nullptr) return 0;
  double best = 0;
  uint64_t rounds = 1000;
  for (int t = 0; t < kTries;) {
    const auto begin = std::chrono::steady_clock::now();
    loop.run(rounds);
    const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    best = std::max(best, static_cast<double>(rounds * loop.operations) / std::max(took, 1e-9) / 1e9);
    if (took >= kLeastSeconds) ++t;
    if (took < kLeastSeconds) rounds *= 4;
  }
  return best;
}

// Peaks of all threads, each by its own clock of CPU time, so that others who use the cores lower them little. A figure
// above what the clock allows is no figure: then the clock, the loop's count, or this bound is wrong.
Result<void> measure_compute(MachineProfile& profile, int threads, bool quick) {
  struct Kind {
    const char* type;
    ComputeLoop loop;
  };
  const CpuFeatures features = cpu_info().features;
  profile.clock_ghz_before = measure_clock_ghz();
  profile.int8_gops_per_core = peak_gops(int8_loop(features));
  profile.float_gops_per_core = peak_gops(float_loop(features));
  std::vector<int> counts = {1};
  if (threads > 1) counts.push_back(threads);
  for (const Kind& kind :
       {Kind{"f32", float_loop(features)}, {"bf16", bf16_loop(features)}, {"int8", int8_loop(features)}}) {
    if (kind.loop.run == nullptr) continue;
    for (int count : counts) {
      ThreadPool pool({.threads = count, .cpus = usable_cpus()});
      std::vector<double> samples;
      for (int run = 0; run < (quick ? 3 : 5); ++run) samples.push_back(peak_of_all(pool, kind.loop));
      profile.peaks.push_back({kind.type, count, summarize(samples)});
    }
  }
  profile.clock_ghz_after = measure_clock_ghz();
  return check_peaks(profile);
}

Result<void> add_engine_reads(const ProbeOptions& options, const StorageFile& file, std::vector<StoragePoint>& points) {
  const bool direct = std::any_of(points.begin(), points.end(), [](const StoragePoint& p) { return p.direct; });
  if (options.engine_reads == nullptr || !direct || file.bytes() < options.engine_reads_bytes) return {};
  const StoragePoint point = RIDGE_TRY(options.engine_reads(file.handle()));
  std::erase_if(points, [&](const StoragePoint& p) {
    return p.direct && p.request_bytes == point.request_bytes && p.depth == point.depth;
  });
  points.push_back(point);
  return {};
}

}  // namespace

Result<void> check_peaks(const MachineProfile& profile) {
  constexpr double kTolerance = 1.05;  // two clocks and a turbo between them
  const CpuFeatures features = cpu_info().features;
  const double ghz = std::max(profile.clock_ghz_before, profile.clock_ghz_after);
  if (ghz <= 0) return {};
  for (const PeakPoint& p : profile.peaks) {
    const ComputeLoop loop = p.type == "int8"   ? int8_loop(features)
                             : p.type == "bf16" ? bf16_loop(features)
                                                : float_loop(features);
    const double most = ghz * most_operations_per_cycle(loop) * p.threads;
    if (most > 0 && p.gops.value > kTolerance * most) {
      return Error{ErrorCode::bug,
                   fmt::format("probe: {} Gop/s of {} on {} threads are above the {} that {:.2f} GHz allow: the clock "
                               "changed meanwhile, or this is a bug; measure again",
                               static_cast<int64_t>(p.gops.value), p.type, p.threads, static_cast<int64_t>(most), ghz)};
    }
  }
  return {};
}

Result<MachineProfile> probe_machine(const ProbeOptions& options) {
  MachineProfile profile;
  profile.name = cpu_info().model;
  profile.measured_at = utc_now();
  int usable = static_cast<int>(usable_cpus().size());
  if (options.threads < 0 || options.threads > usable) {
    return usage_error(fmt::format("--threads {}: this process may use {}; give a number from 1 to {}", options.threads,
                                   counted(static_cast<uint64_t>(usable), "CPU"), usable));
  }
  // What cannot be read or written is found out before the memory is measured, which takes half a minute.
  if (options.storage) (void)RIDGE_TRY(storage_file(options, 0));
  // A quarter of what is free: measuring must not push anything out of memory.
  uint64_t most_bytes = memory_limits().available / 4;

  if (options.memory) {
    ReadPlan plan = read_plan(
        {.threads = options.threads == 0 ? usable : options.threads, .quick = options.quick, .most_bytes = most_bytes});
    Progress bar("measuring memory", point_count(plan), ProgressUnit::items);
    CpuWatch watch;
    profile.reads = RIDGE_TRY(measure_reads(plan, bar));
    profile.contention = contention_of(profile.reads, watch);
    profile.contended = !profile.contention.empty();
    profile.levels = find_levels(profile);
    const StreamPlan streams = stream_plan(
        {.threads = options.threads == 0 ? usable : options.threads, .quick = options.quick, .most_bytes = most_bytes});
    {
      Progress more("measuring copies and latency", point_count(streams), ProgressUnit::items);
      StreamResults results = RIDGE_TRY(measure_streams(streams, more));
      profile.streams = std::move(results.streams);
      profile.latencies = std::move(results.latencies);
    }
    RIDGE_TRY(measure_compute(profile, options.threads == 0 ? usable : options.threads, options.quick));
  }
  if (options.storage) {
    StorageFile file = RIDGE_TRY(storage_file(options, (options.quick ? 64 : 256) * kMiB));
    profile.storage_path = file.path();
    StoragePlan plan = storage_plan(
        {.quick = options.quick, .file_bytes = file.bytes(), .most_bytes = std::min(most_bytes, 64 * kMiB)});
    Progress bar("measuring storage", point_count(plan), ProgressUnit::items);
    profile.storage = RIDGE_TRY(measure_storage(file, plan, bar));
    RIDGE_TRY(add_engine_reads(options, file, profile.storage));
  }
  return profile;
}

}  // namespace ridge
