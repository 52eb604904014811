// What a drive gives while cores compute: the engine's own reads of a file, with nobody else, with threads that spin,
// and with threads that read memory, in turn. On a virtual machine whose host serves the drive with the same cores, or
// with the same memory bus, this is the part of a streamed run's bound that no engine can reach.
//
// Prints a line of Markdown for each kind, 1e9 bytes per second:   busy_reads FILE [ROUNDS]
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <string_view>
#include <thread>
#include <vector>

#include "analyze/engine_reads.h"

namespace {

using namespace ridge;

enum class Work { spin, read };

// Threads that compute as long as this lives, and make room for the one that reads at once (they are nice), as a worker
// of the engine does that hands over requests between two blocks.
class Busy {
 public:
  Busy(unsigned threads, Work work) {
    for (unsigned t = 0; t < threads; ++t) threads_.emplace_back([this, work] { run(work); });
  }
  ~Busy() {
    stop_ = true;
    for (std::thread& t : threads_) t.join();
  }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  void run(Work work) {
    (void)::setpriority(PRIO_PROCESS, 0, 19);    // of this thread alone, on Linux
    constexpr size_t kWords = size_t{64} << 17;  // 64 MiB: larger than what a core caches
    const std::vector<uint64_t> memory(work == Work::read ? kWords : 1, 1);
    uint64_t sum = 0;
    while (!stop_) {
      for (size_t n = 0; n < kWords / 64; ++n) {
        sum = work == Work::read ? sum + memory[n * 8 % memory.size()] : sum * 6364136223846793005u + 1;
      }
    }
    sink_ += sum;
  }

  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> sink_{0};
  std::vector<std::thread> threads_;
};

struct Kind {
  const char* name;
  unsigned threads;
  Work work;
  std::vector<double> rates = {};
};

}  // namespace

int main(int argc, char** argv) {
  int rounds = 7;
  if (argc == 3) {
    const std::string_view word = argv[2];
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), rounds);
    if (error != std::errc{} || end != word.data() + word.size()) rounds = 0;
  }
  if (argc < 2 || argc > 3 || rounds < 1) {
    fmt::print(stderr, "usage: busy_reads FILE [ROUNDS]\n");
    return 2;
  }
  const unsigned cpus = std::max(1u, std::thread::hardware_concurrency());
  std::vector<Kind> kinds = {{"nobody", 0, Work::spin}};
  if (cpus > 1) kinds.push_back({"spin, one core left", cpus - 1, Work::spin});
  kinds.push_back({"spin, all cores", cpus, Work::spin});
  kinds.push_back({"read memory, all cores", cpus, Work::read});
  for (int round = 0; round < rounds; ++round) {
    for (Kind& kind : kinds) {
      const Busy busy(kind.threads, kind.work);
      const Result<StoragePoint> point = measure_engine_reads(argv[1], {.quick = true});
      if (!point) {
        fmt::print(stderr, "busy_reads: {}\n", point.error().message);
        return 3;
      }
      kind.rates.push_back(point.value().gb_per_s.value);
    }
  }
  fmt::print("| who computes | threads | GB/s read | of nobody's |\n|---|---|---|---|\n");
  for (Kind& kind : kinds) {
    std::sort(kind.rates.begin(), kind.rates.end());
    const double median = kind.rates[kind.rates.size() / 2], idle = kinds[0].rates[kinds[0].rates.size() / 2];
    fmt::print("| {} | {} | {:.2f} ({:.2f} to {:.2f}) | {:.0f} % |\n", kind.name, kind.threads, median,
               kind.rates.front(), kind.rates.back(), 100 * median / idle);
  }
  return 0;
}
