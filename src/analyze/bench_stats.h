// Statistics of a few repetitions, without assuming a distribution: the median, an interval for it, and a test whether
// two sets of repetitions differ.
//
// Not for: ceilings (those are the best that was seen), or thousands of samples.
//
//   double m = median(samples);
//   MedianInterval i = median_interval(samples);       // low, high, and how sure
//   if (mann_whitney(before, after).p < 0.05) …
#pragma once

#include <span>

namespace ridge {

// Of at least one sample; the mean of the middle two of an even number.
double median(std::span<const double> samples);

// An interval of order statistics: between the k-th smallest and the k-th largest sample lies the median of the
// distribution with probability 1 − 2 P(Binomial(n, 1/2) < k), whatever the distribution (e.g. Conover, Practical
// Nonparametric Statistics, 3.2). The largest k that gives 95 %; below six samples there is none, and the whole range
// stands in, with the coverage it has (five samples: 93.75 %).
struct MedianInterval {
  double low = 0, high = 0;
  double coverage = 0;
};
MedianInterval median_interval(std::span<const double> samples);

// The two-sided test of Mann and Whitney (1947), exact: the share of all ways to deal the pooled samples out in which
// the rank sum is at least as far from its mean. Ties get mid-ranks. Both sides need at least one sample and at most
// kMostRanked.
struct RankTest {
  double u = 0;  // pairs (a, b) with a > b; a tie counts half
  double p = 1;
};
inline constexpr size_t kMostRanked = 50;
RankTest mann_whitney(std::span<const double> a, std::span<const double> b);

// The smallest p that samples of these sizes can reach: 2 / (n + m choose n), if none are tied.
double smallest_p(size_t n, size_t m);

}  // namespace ridge
