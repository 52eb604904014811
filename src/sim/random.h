// Random numbers for policies and made-up traces: the same on every machine and compiler (base/splitmix.h).
//
// Not for secrets, nor for text (text/rng.h).
//
//   Random random(7);
//   uint64_t victim = random.below(42);      // 0 … 41
//   double u = random.uniform();             // [0, 1)
#pragma once

#include <cstdint>

#include "base/check.h"
#include "base/splitmix.h"

namespace ridge::sim {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() { return splitmix64(state_); }
  // 0 … n − 1. Values that would favour small numbers are drawn again.
  uint64_t below(uint64_t n) {
    RIDGE_CHECK(n > 0, "a number below zero does not exist");
    const uint64_t unfair = (UINT64_MAX % n + 1) % n;  // 2^64 modulo n
    for (;;) {
      uint64_t value = next();
      if (value <= UINT64_MAX - unfair) return value % n;
    }
  }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  uint64_t state_;
};

}  // namespace ridge::sim
