#include "machine/bandwidth.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>

#include "base/log.h"
#include "base/thread_pool.h"
#include "base/units.h"
#include "machine/bandwidth_loop.h"
#include "machine/cpu.h"
#include "machine/probe_memory.h"
#include "machine/probe_rate.h"

namespace ridge {
namespace {

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

// Beyond the first levels it depends on the machine's prefetchers which loop is faster (bandwidth_loop.h).
constexpr uint64_t kBothLoops = kMiB;

// A figure: one loop at one point. The better loop's is the point's.
struct ReadFigure {
  uint64_t footprint = 0;
  int threads = 1;
  size_t pages = 0;  // index of the plan's
  ReadLoop loop;
};

std::vector<ReadFigure> figures_of(const ReadPlan& plan) {
  const CpuFeatures features = cpu_info().features;
  std::vector<ReadFigure> figures;
  for (size_t pages = 0; pages < plan.pages.size(); ++pages) {
    for (int threads : plan.threads) {
      for (uint64_t footprint : plan.footprints) {
        if (!measurable(footprint, threads)) continue;
        figures.push_back({footprint, threads, pages, best_read_loop(features)});
        if (footprint >= kBothLoops) figures.push_back({footprint, threads, pages, fetching_read_loop(features)});
      }
    }
  }
  return figures;
}

void sample(ThreadPool& pool, const ProbeMemory& memory, const ReadFigure& figure, size_t index, Rounds& rounds) {
  const size_t words = words_per_worker(figure.footprint, pool.size());
  const double bytes = static_cast<double>(words * sizeof(uint64_t)) * pool.size();
  std::atomic<uint64_t> sink{0};
  rounds.sample(index, bytes * 1e-9, [&](uint64_t passes) {
    return time_together(pool, [&](int worker) {
      const uint64_t* data = memory.part(worker, pool.size());
      uint64_t sum = 0;
      for (uint64_t pass = 0; pass < passes; ++pass) sum += figure.loop(data, words);
      sink += sum;
    });
  });
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

// The memory of one sitting, one mapping for each page size.
class SittingMemory {
 public:
  // As much of each as the figures that have their turn ask for.
  Result<void> map(const ReadPlan& plan, const std::vector<ReadFigure>& figures, const Rounds& rounds,
                   const std::vector<int>& cpus) {
    ThreadPool pool({.threads = plan.threads.back(), .cpus = cpus});
    for (size_t pages = 0; pages < plan.pages.size(); ++pages) {
      uint64_t most = kSmallestFootprint;
      for (size_t i = 0; i < figures.size(); ++i) {
        if (figures[i].pages == pages && rounds.wanted(i)) most = std::max(most, figures[i].footprint);
      }
      memory_.push_back(std::make_unique<ProbeMemory>(most));
      RIDGE_TRY(memory_.back()->map(plan.pages[pages]));
      touch(pool, *memory_.back(), most);
      huge_.push_back(memory_.back()->has_huge_pages());
    }
    return {};
  }
  const ProbeMemory& of(size_t pages) const { return *memory_[pages]; }
  bool huge(size_t pages) const { return huge_[pages]; }

 private:
  std::vector<std::unique_ptr<ProbeMemory>> memory_;
  std::vector<bool> huge_;
};

// Huge pages that were asked for and not given; then the points of 4 KiB pages say all there is.
bool refused(const ReadPlan& plan, const SittingMemory& memory, size_t pages) {
  if (plan.pages[pages] != PageSize::huge || memory.huge(pages)) return false;
  note_once("probe huge pages",
            "the kernel gives no huge pages here (/sys/kernel/mm/transparent_hugepage/enabled): the "
            "read roof is measured with 4 KiB pages");
  return plan.pages.size() > 1;
}

std::vector<ReadPoint> points_of(const std::vector<ReadFigure>& figures, const std::vector<bool>& huge,
                                 const Rounds& rounds) {
  std::vector<ReadPoint> points;
  size_t pages = 0;
  for (size_t i = 0; i < figures.size(); ++i) {
    const Measured m = rounds.result(i);
    if (m.runs == 0) continue;
    const ReadFigure& f = figures[i];
    const bool again = !points.empty() && points.back().footprint_bytes == f.footprint &&
                       points.back().threads == f.threads && pages == f.pages;
    if (!again) points.push_back({f.footprint, f.threads, huge[f.pages], m});
    if (again && m.value > points.back().gb_per_s.value) points.back().gb_per_s = m;
    pages = f.pages;
  }
  return points;
}

}  // namespace

ReadPlan read_plan(const ReadPlanOptions& options) {
  ReadPlan plan;
  const uint64_t mappings = options.quick ? 1 : 2;
  plan.footprints = footprints(std::min(options.most_bytes / mappings, kLargestFootprint), options.quick);
  plan.threads = thread_counts(options.threads, options.quick);
  if (options.quick) {
    // Weights lie in huge pages where there are any; the last is the fallback.
    plan.pages = {PageSize::huge};
    plan.rounds = quick_rounds();
  } else {
    plan.pages = {PageSize::huge, PageSize::small};
    plan.rounds = full_rounds();
  }
  return plan;
}

uint64_t point_count(const ReadPlan& plan) {
  return figures_of(plan).size() * static_cast<uint64_t>(plan.rounds.most());
}

Result<std::vector<ReadPoint>> measure_reads(const ReadPlan& plan, Progress& bar) {
  if (plan.footprints.empty()) {
    return does_not_fit(
        "probe: less than 16 KiB of memory may be used for the read roof; free some memory and try again");
  }
  const std::vector<int> cpus = usable_cpus();
  const std::vector<ReadFigure> figures = figures_of(plan);
  Rounds rounds(figures.size(), plan.rounds);
  std::vector<bool> huge(plan.pages.size());
  while (rounds.next()) {
    SittingMemory memory;
    RIDGE_TRY(memory.map(plan, figures, rounds, cpus));
    std::unique_ptr<ThreadPool> pool;
    for (size_t i = 0; i < figures.size(); ++i) {
      const ReadFigure& f = figures[i];
      bar.advance(1);
      if (!rounds.wanted(i) || refused(plan, memory, f.pages)) continue;
      huge[f.pages] = memory.huge(f.pages);
      if (pool == nullptr || pool->size() != f.threads) {
        pool.reset();  // it binds this thread to a CPU, and gives it back
        pool = std::make_unique<ThreadPool>(ThreadPoolOptions{.threads = f.threads, .cpus = cpus});
      }
      sample(*pool, memory.of(f.pages), f, i, rounds);
    }
  }
  return points_of(figures, huge, rounds);
}

}  // namespace ridge
