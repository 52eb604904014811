#include "analyze/bench_stats.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/check.h"

namespace ridge {
namespace {

std::vector<double> sorted(std::span<const double> samples) {
  std::vector<double> out(samples.begin(), samples.end());
  std::sort(out.begin(), out.end());
  return out;
}

// Twice the mid-rank of every pooled sample, so that ties stay whole numbers: a's first, then b's.
std::vector<uint64_t> doubled_ranks(std::span<const double> a, std::span<const double> b) {
  std::vector<double> all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  std::vector<double> order = sorted(all);
  std::vector<uint64_t> ranks;
  for (double x : all) {
    auto [first, last] = std::equal_range(order.begin(), order.end(), x);
    // Ranks first + 1 … last; their mean, doubled.
    ranks.push_back(static_cast<uint64_t>((first - order.begin()) + 1 + (last - order.begin())));
  }
  return ranks;
}

// For every sum, in how many ways `count` of the ranks add up to it. Doubles: the counts may pass 2⁶⁴.
std::vector<double> ways_to_sum(const std::vector<uint64_t>& ranks, size_t count) {
  uint64_t total = 0;
  for (uint64_t r : ranks) total += r;
  std::vector<std::vector<double>> ways(count + 1, std::vector<double>(total + 1, 0.0));
  ways[0][0] = 1;
  uint64_t reached = 0;
  for (uint64_t r : ranks) {
    reached += r;
    for (size_t k = count; k >= 1; --k) {
      for (uint64_t s = reached; s >= r; --s) ways[k][s] += ways[k - 1][s - r];
    }
  }
  return ways[count];
}

}  // namespace

double median(std::span<const double> samples) {
  RIDGE_CHECK(!samples.empty(), "a median needs a sample");
  std::vector<double> order = sorted(samples);
  size_t half = order.size() / 2;
  return order.size() % 2 == 1 ? order[half] : (order[half - 1] + order[half]) / 2;
}

MedianInterval median_interval(std::span<const double> samples) {
  RIDGE_CHECK(!samples.empty(), "an interval needs a sample");
  constexpr double kWanted = 0.95;
  std::vector<double> order = sorted(samples);
  size_t n = order.size();
  double term = std::pow(0.5, static_cast<double>(n));  // P(Binomial = k − 1)
  double outside = term;                                // P(Binomial < k)
  size_t k = 1;
  while (2 * (k + 1) <= n + 1) {
    double next = term * static_cast<double>(n - k + 1) / static_cast<double>(k);
    if (1 - 2 * (outside + next) < kWanted) break;
    term = next;
    outside += next;
    ++k;
  }
  return {.low = order[k - 1], .high = order[n - k], .coverage = std::max(0.0, 1 - 2 * outside)};
}

RankTest mann_whitney(std::span<const double> a, std::span<const double> b) {
  RIDGE_CHECK(!a.empty() && !b.empty(), "a rank test needs samples on both sides");
  RIDGE_CHECK(a.size() <= kMostRanked && b.size() <= kMostRanked, "the exact test is for few samples");
  std::vector<uint64_t> ranks = doubled_ranks(a, b);
  uint64_t observed = 0, total = 0;
  for (size_t i = 0; i < ranks.size(); ++i) {
    total += ranks[i];
    if (i < a.size()) observed += ranks[i];
  }
  double n = static_cast<double>(a.size());
  // Everything doubled: the mean of the rank sum is n (N + 1) / 2.
  double mean = static_cast<double>(total) * n / static_cast<double>(ranks.size());
  double distance = std::abs(static_cast<double>(observed) - mean);
  std::vector<double> ways = ways_to_sum(ranks, a.size());
  double extreme = 0, all = 0;
  for (size_t s = 0; s < ways.size(); ++s) {
    all += ways[s];
    constexpr double kRounding = 1e-6;  // sums are whole numbers, the mean is not always
    if (std::abs(static_cast<double>(s) - mean) >= distance - kRounding) extreme += ways[s];
  }
  return {.u = static_cast<double>(observed) / 2 - n * (n + 1) / 2, .p = std::min(1.0, extreme / all)};
}

double smallest_p(size_t n, size_t m) {
  double choose = 1;
  for (size_t i = 1; i <= n; ++i) choose = choose * static_cast<double>(m + i) / static_cast<double>(i);
  return std::min(1.0, 2 / choose);
}

}  // namespace ridge
