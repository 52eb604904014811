// How fast workers do a piece of work together: what the probes of memory time. Figures are sampled in rounds: each has
// its turn in every sitting, and a sitting begins with memory of its own, so that neither a slow minute nor the pages
// that the kernel happened to give decides about one of them. Figures that do not settle get more sittings.
//
// Not for: work of one thread that waits for others; threads here spin until all have started.
//
//   Rounds rounds(figures, {.sittings = 5, .samples = 2, .more = 5, .run_time = 5ms});
//   while (rounds.next())                                    // a sitting
//     for (size_t i = 0; i < figures; ++i)
//       if (rounds.wanted(i)) rounds.sample(i, gb, [&](uint64_t passes) {
//         return time_together(pool, [&](int worker) { read(worker, passes); });
//       });
//   rounds.result(i);
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "base/function_ref.h"
#include "base/thread_pool.h"
#include "machine/profile.h"

namespace ridge {

struct Timed {
  double seconds = 0;
  // Some worker had not its CPU for a fiftieth of the time or more: another program had it, and the time says nothing.
  bool disturbed = false;
};
// From the first start to the last end of job(worker) on all workers. They start together, so waking them is not in the
// figure.
Timed time_together(ThreadPool& pool, FunctionRef<void(int worker)> job);

struct RoundsPlan {
  int sittings = 5;
  int samples = 2;                      // of each figure in a sitting
  int more = 5;                         // sittings at most for those that have not settled by then
  std::chrono::nanoseconds run_time{};  // that a sample takes, or half of it at least
  int most() const { return sittings + more; }
};

// What the probes of memory take: `ridge probe`, and with --quick.
RoundsPlan full_rounds();
RoundsPlan quick_rounds();

class Rounds {
 public:
  Rounds(size_t figures, const RoundsPlan& plan) : plan_(plan), figures_(figures) {}

  // Begins the next sitting; false when all figures have settled, or nothing more is granted.
  bool next();
  // Whether the figure has its turn in this sitting.
  bool wanted(size_t figure) const;
  // Takes samples of `amount`, of one pass, per second. timed(passes) does that many passes; the first, which are not
  // counted, warm the caches and say how many fill a sample; samples of fewer are dropped.
  void sample(size_t figure, double amount, FunctionRef<Timed(uint64_t passes)> timed);
  // A sample that was taken otherwise.
  void add(size_t figure, double rate) { figures_[figure].rates.push_back(rate); }
  // Median and quartiles of the samples that nobody disturbed; where those are fewer than three, of all, and then it
  // has not settled. `runs` counts the undisturbed ones, at least 1.
  Measured result(size_t figure) const;

 private:
  struct Figure {
    uint64_t passes = 1;
    std::vector<double> rates, disturbed;
  };
  RoundsPlan plan_;
  std::vector<Figure> figures_;
  int sitting_ = 0;  // 1: the first
};

}  // namespace ridge
