// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014): a counter that grows
// by the golden ratio, and a mixing function. The same on every machine and compiler. Not for secrets.
//
//   uint64_t state = 7;
//   uint64_t bits = splitmix64(state);      // and the state is the next one
#pragma once

#include <cstdint>

namespace ridge {

constexpr uint64_t splitmix64(uint64_t& state) {
  uint64_t z = state += 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

}  // namespace ridge
