// Ridge's own random numbers: xoshiro256** (Blackman and Vigna, "Scrambled linear pseudorandom number generators",
// 2018), its state filled by splitmix64 from a 64-bit seed. The same seed gives the same numbers on every machine and
// compiler.
//
// Not for: secrets. Not thread-safe: one generator per user.
//
//   Rng rng(42);
//   uint64_t bits = rng.next();
//   double u = rng.uniform();      // in [0, 1)
#pragma once

#include <bit>
#include <cstdint>

#include "base/splitmix.h"

namespace ridge {

class Rng {
 public:
  explicit constexpr Rng(uint64_t seed) {
    for (uint64_t& word : state_) word = splitmix64(seed);
  }

  constexpr uint64_t next() {
    const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // The upper 53 bits times 2^-53: every multiple of 2^-53 in [0, 1) is equally likely.
  constexpr double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  uint64_t state_[4] = {};
};

}  // namespace ridge
