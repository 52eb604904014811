#include "machine/bandwidth.h"

#include <algorithm>
#include <atomic>
#include <cstddef>

#include "base/log.h"
#include "base/thread_pool.h"
#include "base/units.h"
#include "machine/bandwidth_loop.h"
#include "machine/cpu.h"
#include "machine/probe_memory.h"
#include "machine/probe_stats.h"

namespace ridge {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kSmallestFootprint = 16 * kKiB, kLargestFootprint = kGiB;
constexpr uint64_t kSmallPage = 4 * kKiB;
constexpr uint64_t kLeastPerThread = kSmallPage;  // below, a pass is shorter than the clock's reading

// Words that one worker reads of a footprint: whole pages, as parts begin at pages.
size_t words_per_worker(uint64_t footprint, int workers) {
  static_assert(kSmallPage % (kReadLoopWords * sizeof(uint64_t)) == 0, "a page must suit the loop");
  return footprint / static_cast<uint64_t>(workers) / kSmallPage * kSmallPage / sizeof(uint64_t);
}

bool measurable(uint64_t footprint, int workers) {
  return footprint / static_cast<uint64_t>(workers) >= kLeastPerThread;
}

// First touch by the thread that reads most of it when all read, so that on several nodes the memory is near it.
void touch(ThreadPool& pool, const ProbeMemory& memory, uint64_t footprint) {
  size_t words = words_per_worker(footprint, pool.size());
  pool.run([&](int worker) {
    uint64_t* data = memory.part(worker, pool.size());
    for (size_t i = 0; i < words; ++i) data[i] = i;
  });
}

// Seconds in which every worker reads its part `passes` times: from the first start to the last end. Workers start
// together, so waking them is not in the figure.
double time_passes(ThreadPool& pool, const ProbeMemory& memory, ReadLoop loop, size_t words, uint64_t passes) {
  std::vector<Clock::time_point> starts(static_cast<size_t>(pool.size())), ends(starts);
  std::atomic<int> arrived{0};
  std::atomic<uint64_t> sink{0};
  pool.run([&](int worker) {
    size_t w = static_cast<size_t>(worker);
    const uint64_t* data = memory.part(worker, pool.size());
    arrived.fetch_add(1);
    while (arrived.load() < pool.size()) {
    }
    starts[w] = Clock::now();
    uint64_t sum = 0;
    for (uint64_t pass = 0; pass < passes; ++pass) sum += loop(data, words);
    ends[w] = Clock::now();
    sink += sum;
  });
  auto first = *std::min_element(starts.begin(), starts.end());
  auto last = *std::max_element(ends.begin(), ends.end());
  return std::chrono::duration<double>(last - first).count();
}

Measured measure_point(ThreadPool& pool, const ProbeMemory& memory, const ReadPlan& plan, uint64_t footprint) {
  ReadLoop loop = best_read_loop(cpu_info().features);
  size_t words = words_per_worker(footprint, pool.size());
  // The first passes warm the caches and say how many passes fill a run.
  double target = std::chrono::duration<double>(plan.run_time).count();
  uint64_t passes = 1;
  for (double took = time_passes(pool, memory, loop, words, passes); took < target && passes < (1u << 30);) {
    double more = std::clamp(1.1 * target / std::max(took, 1e-7), 1.5, 100.0);
    passes = static_cast<uint64_t>(static_cast<double>(passes) * more) + 1;
    took = time_passes(pool, memory, loop, words, passes);
  }
  double bytes = static_cast<double>(words * sizeof(uint64_t)) * pool.size() * static_cast<double>(passes);
  std::vector<double> rates;
  for (int run = 0; run < plan.runs; ++run) {
    rates.push_back(bytes / std::max(time_passes(pool, memory, loop, words, passes), 1e-9) / 1e9);
  }
  return summarize(rates);
}

// Powers of two up to `most`, and `most` itself. Quick: about one per level of the hierarchy.
std::vector<uint64_t> footprints(uint64_t most, bool quick) {
  std::vector<uint64_t> all;
  most = most / kSmallestFootprint * kSmallestFootprint;
  for (uint64_t bytes = quick ? 4 * kSmallestFootprint : kSmallestFootprint; bytes < most; bytes *= quick ? 16 : 2) {
    all.push_back(bytes);
  }
  if (most > 0) all.push_back(most);
  return all;
}

// 1 … most; above eight only powers of two and `most`. Quick: one and all.
std::vector<int> thread_counts(int most, bool quick) {
  std::vector<int> counts;
  for (int threads = 1; threads < most; threads += threads < 8 ? 1 : threads) {
    if (!quick || threads == 1) counts.push_back(threads);
  }
  counts.push_back(most);
  return counts;
}

// All points of one page size.
Result<void> measure_pages(const ReadPlan& plan, PageSize pages, Progress& bar, std::vector<ReadPoint>& points) {
  std::vector<int> cpus = usable_cpus();
  ProbeMemory memory(plan.footprints.back());
  RIDGE_TRY(memory.map(pages));
  {
    ThreadPool pool({.threads = plan.threads.back(), .cpus = cpus});
    touch(pool, memory, plan.footprints.back());
  }
  bool huge = memory.has_huge_pages();
  if (pages == PageSize::huge && !huge) {
    note_once("probe huge pages",
              "the kernel gives no huge pages here (/sys/kernel/mm/transparent_hugepage/enabled): the "
              "read roof is measured with 4 KiB pages");
    if (plan.pages.size() > 1) return {};  // the 4 KiB points follow
  }
  for (int threads : plan.threads) {
    ThreadPool pool({.threads = threads, .cpus = cpus});
    for (uint64_t footprint : plan.footprints) {
      if (measurable(footprint, threads)) {
        points.push_back({footprint, threads, huge, measure_point(pool, memory, plan, footprint)});
      }
      bar.advance(1);
    }
  }
  return {};
}

}  // namespace

ReadPlan read_plan(const ReadPlanOptions& options) {
  ReadPlan plan;
  plan.footprints = footprints(std::min(options.most_bytes, kLargestFootprint), options.quick);
  plan.threads = thread_counts(options.threads, options.quick);
  if (options.quick) {
    // Weights lie in huge pages where there are any; the last is the fallback.
    plan.pages = {PageSize::huge};
    plan.runs = 3;
    plan.run_time = std::chrono::milliseconds(2);
  } else {
    plan.pages = {PageSize::huge, PageSize::small};
    plan.runs = 5;
    plan.run_time = std::chrono::milliseconds(5);
  }
  return plan;
}

uint64_t point_count(const ReadPlan& plan) { return plan.footprints.size() * plan.threads.size() * plan.pages.size(); }

Result<std::vector<ReadPoint>> measure_reads(const ReadPlan& plan, Progress& bar) {
  std::vector<ReadPoint> points;
  if (plan.footprints.empty()) {
    return does_not_fit(
        "probe: less than 16 KiB of memory may be used for the read roof; free some memory and try again");
  }
  for (PageSize pages : plan.pages) RIDGE_TRY(measure_pages(plan, pages, bar, points));
  return points;
}

}  // namespace ridge
