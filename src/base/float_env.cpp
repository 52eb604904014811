#include "base/float_env.h"

#include <cfenv>
#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace ridge {

void set_float_environment() {
  std::fesetround(FE_TONEAREST);
#if defined(__x86_64__)
  constexpr unsigned kFlushToZero = 0x8000, kDenormalsAreZero = 0x0040;
  _mm_setcsr(_mm_getcsr() & ~(kFlushToZero | kDenormalsAreZero));
#elif defined(__aarch64__)
  // FPCR: FZ and FZ16 flush results, FIZ and AH (of Armv8.7) inputs as well.
  constexpr uint64_t kFlushing = (1u << 24) | (1u << 19) | (1u << 1) | 1u;
  uint64_t control;
  __asm__ volatile("mrs %0, fpcr" : "=r"(control));
  __asm__ volatile("msr fpcr, %0" : : "r"(control & ~kFlushing));
#endif
}

}  // namespace ridge
