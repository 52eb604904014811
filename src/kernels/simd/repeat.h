// Loops whose counter is a constant in each turn, for what wants one: shifts by immediates, arrays of registers.
//
//   repeat<4>([&]<int i>() __attribute__((always_inline)) { acc[i] = V::zero(); });
#pragma once

namespace ridge::simd {

// Calls f.operator()<i>() for i in [0, count).
template <int count, int i = 0, class Function>
inline __attribute__((always_inline)) void repeat(const Function& f) {
  if constexpr (i < count) {
    f.template operator()<i>();
    repeat<count, i + 1>(f);
  }
}

}  // namespace ridge::simd
