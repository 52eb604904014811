// What a compiler makes of a plain read loop in the manner of STREAM: sums over an array, every thread its part,
// nothing tuned. bench/read_roof.py compiles it with -O3 -march=native and holds the probe's read roof against it.
//
// Prints the best of some tries in 1e9 bytes per second:   plain_read BYTES THREADS MILLISECONDS
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

uint64_t sum_of(const uint64_t* words, size_t count) {
  uint64_t sum = 0;
  for (size_t i = 0; i < count; ++i) sum += words[i];
  return sum;
}

struct Span {
  Clock::time_point start, end;
};

double gb_per_s(const uint64_t* words, size_t count, int threads, int passes) {
  std::vector<Span> spans(static_cast<size_t>(threads));
  std::atomic<int> arrived{0};
  std::atomic<uint64_t> sink{0};
  std::vector<std::thread> workers;
  const size_t part = count / static_cast<size_t>(threads);
  for (int t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      arrived.fetch_add(1);
      while (arrived.load() < threads) {
      }
      Span& span = spans[static_cast<size_t>(t)];
      span.start = Clock::now();
      for (int p = 0; p < passes; ++p) sink += sum_of(words + static_cast<size_t>(t) * part, part);
      span.end = Clock::now();
    });
  }
  for (std::thread& w : workers) w.join();
  Span all = spans.front();
  for (const Span& s : spans) all.start = std::min(all.start, s.start), all.end = std::max(all.end, s.end);
  const double seconds = std::chrono::duration<double>(all.end - all.start).count();
  return static_cast<double>(part * static_cast<size_t>(threads) * sizeof(uint64_t)) * passes / seconds * 1e-9;
}

}  // namespace

int main(int count, char** words) {
  if (count != 4) return 2;
  const size_t bytes = std::strtoull(words[1], nullptr, 10);
  const int threads = std::atoi(words[2]);
  const double seconds = std::atof(words[3]) * 1e-3;
  constexpr size_t kHugePage = size_t{2} << 20;
  const size_t mapped = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  void* memory = std::aligned_alloc(kHugePage, mapped);
  if (memory == nullptr || threads < 1) return 2;
  (void)madvise(memory, mapped, MADV_HUGEPAGE);
  auto* data = static_cast<uint64_t*>(memory);
  for (size_t i = 0; i < bytes / sizeof(uint64_t); ++i) data[i] = i;
  double best = 0;
  int passes = 1;
  for (int tries = 0; tries < 15;) {
    const Clock::time_point begin = Clock::now();
    best = std::max(best, gb_per_s(data, bytes / sizeof(uint64_t), threads, passes));
    if (std::chrono::duration<double>(Clock::now() - begin).count() < seconds && passes < (1 << 24)) {
      passes *= 2;
    } else {
      ++tries;
    }
  }
  std::free(memory);
  std::printf("%.3f\n", best);
}
