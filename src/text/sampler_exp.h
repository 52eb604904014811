// e^x that is the same on every machine: only IEEE additions and multiplications in a fixed order (contraction is off),
// no libm. For the probabilities of the sampler, thus for x <= 0; not for hot loops.
//
//   double p = exp_nonpositive(logit - largest);
#pragma once

#include <bit>
#include <cstdint>

namespace ridge {

// Within 2 ulp for x in [-708, 0]; 0 below (no subnormal numbers), also for -infinity.
inline double exp_nonpositive(double x) {
  if (!(x > -708.0)) return 0.0;
  constexpr double kLog2E = 1.4426950408889634;
  constexpr double kLn2High = 6.93147180369123816490e-01;  // its last 21 bits are zero: k * kLn2High is exact
  constexpr double kLn2Low = 1.90821492927058770002e-10;
  const auto k = static_cast<int64_t>(x * kLog2E - 0.5);  // rounds to nearest, since x is not positive
  const auto whole = static_cast<double>(k);
  const double r = (x - whole * kLn2High) - whole * kLn2Low;  // |r| <= ln(2) / 2
  // Taylor's series of e^r by Horner's rule; the first term left out is below 2^-57.
  constexpr double kInverseFactorials[] = {1.0 / 6227020800.0,
                                           1.0 / 479001600.0,
                                           1.0 / 39916800.0,
                                           1.0 / 3628800.0,
                                           1.0 / 362880.0,
                                           1.0 / 40320.0,
                                           1.0 / 5040.0,
                                           1.0 / 720.0,
                                           1.0 / 120.0,
                                           1.0 / 24.0,
                                           1.0 / 6.0,
                                           0.5,
                                           1.0,
                                           1.0};
  double series = 0.0;
  for (const double factor : kInverseFactorials) series = series * r + factor;
  return series * std::bit_cast<double>(static_cast<uint64_t>(k + 1023) << 52);  // 2^k, k >= -1022
}

}  // namespace ridge
