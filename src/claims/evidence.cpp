#include "claims/evidence.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"

namespace ridge {

Estimate estimate(const std::vector<double>& values) {
  RIDGE_CHECK(!values.empty(), "an estimate needs values");
  // Two-sided 95 % points of Student's t for 1, 2, … degrees of freedom; beyond the table its last one, which is wider
  // than the truth.
  constexpr std::array<double, 9> kT = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262};
  Estimate out{.values = values.size()};
  const auto n = static_cast<double>(values.size());
  for (double v : values) out.mean += v / n;
  if (values.size() < 2) return out;
  double squares = 0;
  for (double v : values) squares += (v - out.mean) * (v - out.mean);
  out.half = kT[std::min(values.size() - 2, kT.size() - 1)] * std::sqrt(squares / (n - 1) / n);
  return out;
}

std::string_view name_of(Method method) {
  constexpr std::string_view kNames[] = {"int8",  "int8, pins",  "int8, resting",
                                         "4 bit", "4 bit, pins", "4 bit, resting"};
  return kNames[static_cast<size_t>(method)];
}

Method plain(Method method) { return method < Method::four ? Method::int8 : Method::four; }

std::string_view name_of(StudentKind kind) {
  constexpr std::string_view kNames[] = {"ReGLU, CE", "ReGLU, KD", "ReGLU, KD + L1"};
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace ridge
