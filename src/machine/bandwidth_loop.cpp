#include "machine/bandwidth_loop.h"

// Function-level targets instead of compiler flags: the rest of this file, and every inline function in it, stays
// runnable on the oldest CPU.
#if defined(__x86_64__) && defined(__clang__)
#define RIDGE_TARGET_AVX2 __attribute__((target("avx2")))
#define RIDGE_TARGET_AVX512 __attribute__((target("avx512f"), min_vector_width(512)))
#elif defined(__x86_64__)
#define RIDGE_TARGET_AVX2 __attribute__((target("avx2")))
#define RIDGE_TARGET_AVX512 __attribute__((target("avx512f,prefer-vector-width=512")))
#endif

namespace ridge {
namespace {

// Vectors of the compiler rather than a loop that it may vectorise: at -O2 g++ 12 does not, and then the loads of the
// first levels are bound by their number (89 instead of 265 GB/s at 32 KiB).
template <size_t kBytes>
struct Vector {
  using Words __attribute__((vector_size(kBytes), aligned(8), may_alias)) = uint64_t;
};

// Four streams a quarter apart: four accumulators, and four pages for the prefetchers.
template <size_t kBytes>
inline __attribute__((always_inline)) uint64_t sum_words(const uint64_t* words, size_t count) {
  using Words = typename Vector<kBytes>::Words;
  constexpr size_t kLanes = kBytes / sizeof(uint64_t);
  static_assert(kReadLoopWords % (4 * kLanes) == 0, "a quarter of the least count is whole vectors");
  const size_t quarter = count / 4 / kLanes;
  const auto* a = static_cast<const Words*>(static_cast<const void*>(words));
  const Words *b = a + quarter, *c = b + quarter, *d = c + quarter;
  Words sum_a{}, sum_b{}, sum_c{}, sum_d{};
  for (size_t i = 0; i < quarter; ++i) {
    sum_a += a[i];
    sum_b += b[i];
    sum_c += c[i];
    sum_d += d[i];
  }
  const Words all = (sum_a + sum_b) + (sum_c + sum_d);
  uint64_t sum = 0;
  for (size_t lane = 0; lane < kLanes; ++lane) sum += all[lane];
  return sum;
}

// One stream, 1 KiB at a time; the lines of the kilobyte after the next are asked for first.
template <size_t kBytes>
inline __attribute__((always_inline)) uint64_t sum_fetching(const uint64_t* words, size_t count) {
  constexpr size_t kLineWords = 64 / sizeof(uint64_t), kAhead = 2 * kReadLoopWords;
  uint64_t sum = 0;
  for (size_t at = 0; at < count; at += kReadLoopWords) {
    // A fetch behind the end does nothing.
    for (size_t line = 0; line < kReadLoopWords; line += kLineWords) __builtin_prefetch(words + at + kAhead + line);
    sum += sum_words<kBytes>(words + at, kReadLoopWords);
  }
  return sum;
}

uint64_t sum_baseline(const uint64_t* words, size_t count) { return sum_words<16>(words, count); }
uint64_t fetch_baseline(const uint64_t* words, size_t count) { return sum_fetching<16>(words, count); }

#if defined(__x86_64__)
RIDGE_TARGET_AVX2 uint64_t sum_avx2(const uint64_t* words, size_t count) { return sum_words<32>(words, count); }
RIDGE_TARGET_AVX512 uint64_t sum_avx512(const uint64_t* words, size_t count) { return sum_words<64>(words, count); }
RIDGE_TARGET_AVX2 uint64_t fetch_avx2(const uint64_t* words, size_t count) { return sum_fetching<32>(words, count); }
RIDGE_TARGET_AVX512 uint64_t fetch_avx512(const uint64_t* words, size_t count) {
  return sum_fetching<64>(words, count);
}
#endif

}  // namespace

ReadLoop best_read_loop([[maybe_unused]] CpuFeatures features) {
#if defined(__x86_64__)
  if (features.has_all(kAvx512)) return sum_avx512;
  if (features.has_all(kAvx2Fma)) return sum_avx2;
#endif
  return sum_baseline;
}

ReadLoop fetching_read_loop([[maybe_unused]] CpuFeatures features) {
#if defined(__x86_64__)
  if (features.has_all(kAvx512)) return fetch_avx512;
  if (features.has_all(kAvx2Fma)) return fetch_avx2;
#endif
  return fetch_baseline;
}

}  // namespace ridge
