#include "machine/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/cache_folder.h"
#include "base/progress.h"
#include "base/units.h"
#include "base/utc_now.h"
#include "machine/bandwidth.h"
#include "machine/compute_probe.h"
#include "machine/cpu.h"
#include "machine/memory_limits.h"
#include "machine/probe_contention.h"
#include "machine/probe_stats.h"
#include "machine/storage_probe.h"
#include "machine/stream_probe.h"

namespace ridge {
namespace {

// One figure in ten may be unlucky, as its own quartiles say; more of them means that the machine was not quiet.
constexpr double kUnsettledShare = 0.10;

// Why the figures are not to be trusted, empty if they are. Storage is not judged: it may be shared by its nature, and
// its quartiles stand beside each figure.
std::string contention_of(const MachineProfile& profile, const CpuWatch& watch) {
  std::string why = watch.contention();
  if (!why.empty()) return why;
  const auto [low, high] = std::minmax(profile.clock_ghz_before, profile.clock_ghz_after);
  if (high - low > kSettledSpread * high) {
    return fmt::format("the clock went from {:.2f} to {:.2f} GHz meanwhile", profile.clock_ghz_before,
                       profile.clock_ghz_after);
  }
  size_t all = 0, unsettled = 0;
  auto count = [&](const Measured& m) {
    ++all;
    if (!settled(m)) ++unsettled;
  };
  for (const ReadPoint& p : profile.reads) count(p.gb_per_s);
  for (const StreamPoint& p : profile.streams) count(p.gb_per_s);
  for (const LatencyPoint& p : profile.latencies) count(p.ns);
  for (const PeakPoint& p : profile.peaks) count(p.gops);
  if (static_cast<double>(unsettled) <= kUnsettledShare * static_cast<double>(all)) return {};
  return fmt::format("{} of {} figures did not settle within {:.0f} %", unsettled, all, kSettledSpread * 100);
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

Result<MachineProfile> probe_machine(const ProbeOptions& options) {
  MachineProfile profile;
  profile.name = cpu_info().model;
  profile.measured_at = utc_now();
  int usable = static_cast<int>(usable_cpus().size());
  if (options.threads < 0 || options.threads > usable) {
    return usage_error(fmt::format("--threads {}: this process may use {}; give a number from 1 to {}", options.threads,
                                   counted(static_cast<uint64_t>(usable), "CPU"), usable));
  }
  // What cannot be read or written is found out before the memory is measured, which takes a minute.
  if (options.storage) (void)RIDGE_TRY(storage_file(options, 0));
  // A quarter of what is free: measuring must not push anything out of memory.
  uint64_t most_bytes = memory_limits().available / 4;

  if (options.memory) {
    ReadPlan plan = read_plan(
        {.threads = options.threads == 0 ? usable : options.threads, .quick = options.quick, .most_bytes = most_bytes});
    Progress bar("measuring memory", point_count(plan), ProgressUnit::items);
    CpuWatch watch;
    profile.reads = RIDGE_TRY(measure_reads(plan, bar));
    profile.levels = find_levels(profile);
    const StreamPlan streams = stream_plan(
        {.threads = options.threads == 0 ? usable : options.threads, .quick = options.quick, .most_bytes = most_bytes});
    {
      Progress more("measuring copies and latency", point_count(streams), ProgressUnit::items);
      StreamResults results = RIDGE_TRY(measure_streams(streams, more));
      profile.streams = std::move(results.streams);
      profile.latencies = std::move(results.latencies);
    }
    RIDGE_TRY(
        measure_compute({.threads = options.threads == 0 ? usable : options.threads, .quick = options.quick}, profile));
    profile.contention = contention_of(profile, watch);
    profile.contended = !profile.contention.empty();
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
