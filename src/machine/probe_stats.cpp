#include "machine/probe_stats.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace ridge {
namespace {

// `part` of the way through the sorted samples, 0 to 1.
double quantile(const std::vector<double>& sorted, double part) {
  double position = part * static_cast<double>(sorted.size() - 1);
  size_t below = static_cast<size_t>(position);
  size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], position - static_cast<double>(below));
}

}  // namespace

Measured summarize(std::span<const double> samples) {
  if (samples.empty()) return {};
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  return {.value = quantile(sorted, 0.5),
          .low = quantile(sorted, 0.25),
          .high = quantile(sorted, 0.75),
          .runs = static_cast<int>(sorted.size())};
}

double spread(const Measured& measured) {
  return measured.value > 0 ? (measured.high - measured.low) / measured.value : 0;
}

bool settled(const Measured& measured) {
  return measured.runs >= static_cast<int>(kLeastSamples) && spread(measured) <= kSettledSpread;
}

}  // namespace ridge
