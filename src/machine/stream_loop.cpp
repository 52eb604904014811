#include "machine/stream_loop.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#if defined(__clang__)
#define RIDGE_TARGET_AVX2 __attribute__((target("avx2")))
#define RIDGE_TARGET_AVX512 __attribute__((target("avx512f"), min_vector_width(512)))
#else
#define RIDGE_TARGET_AVX2 __attribute__((target("avx2")))
#define RIDGE_TARGET_AVX512 __attribute__((target("avx512f,prefer-vector-width=512")))
#endif
#endif

namespace ridge {
namespace {

// Vectors of eight doubles; the compiler splits them where registers are narrower.
using Eight = double __attribute__((vector_size(64), aligned(64), may_alias));

inline __attribute__((always_inline)) void triad_vectors(double* to, const double* a, const double* b, size_t count) {
  auto* out = static_cast<Eight*>(static_cast<void*>(to));
  const auto* x = static_cast<const Eight*>(static_cast<const void*>(a));
  const auto* y = static_cast<const Eight*>(static_cast<const void*>(b));
  for (size_t i = 0; i < count / 8; ++i) out[i] = x[i] + 3.0 * y[i];
}

inline __attribute__((always_inline)) void copy_vectors(double* to, const double* from, size_t count) {
  auto* out = static_cast<Eight*>(static_cast<void*>(to));
  const auto* in = static_cast<const Eight*>(static_cast<const void*>(from));
  for (size_t i = 0; i < count / 8; ++i) {
    out[i] = in[i];
    __asm__ volatile("" ::: "memory");  // else it becomes a call of memcpy, which streams when it likes
  }
}

void triad_baseline(double* to, const double* a, const double* b, size_t n) { triad_vectors(to, a, b, n); }
void copy_baseline(double* to, const double* from, size_t n) { copy_vectors(to, from, n); }

#if defined(__x86_64__)
RIDGE_TARGET_AVX2 void copy_avx2(double* to, const double* from, size_t n) { copy_vectors(to, from, n); }
RIDGE_TARGET_AVX512 void copy_avx512(double* to, const double* from, size_t n) { copy_vectors(to, from, n); }
RIDGE_TARGET_AVX2 void triad_avx2(double* to, const double* a, const double* b, size_t n) {
  triad_vectors(to, a, b, n);
}
RIDGE_TARGET_AVX512 void triad_avx512(double* to, const double* a, const double* b, size_t n) {
  triad_vectors(to, a, b, n);
}

void copy_streaming(double* to, const double* from, size_t n) {
  for (size_t i = 0; i < n; i += 2) _mm_stream_pd(to + i, _mm_load_pd(from + i));
  _mm_sfence();
}
#endif

}  // namespace

StreamLoops best_stream_loops([[maybe_unused]] CpuFeatures features) {
#if defined(__x86_64__)
  if (features.has_all(kAvx512)) return {copy_avx512, triad_avx512, copy_streaming};
  if (features.has_all(kAvx2Fma)) return {copy_avx2, triad_avx2, copy_streaming};
  return {copy_baseline, triad_baseline, copy_streaming};
#else
  return {copy_baseline, triad_baseline, nullptr};
#endif
}

}  // namespace ridge
