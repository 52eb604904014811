// How memory grows with the number of contexts, and what all of them would take: least squares with an interval, the
// ratio of added memory to weights by kind of block, and the two shorter ways that the document took.
//
// Not for: measuring, or deciding when to stop (memory_gates.h).
//
//   Prediction all = line_at(levels, 84);             // of the added PSS, with a 95 % interval
//   double document = last_step_at(levels, 84);
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace ridge {

// A cumulative measurement: `value` with `contexts` of them loaded.
struct Level {
  double contexts = 0, value = 0;
};

struct Prediction {
  double value = 0, low = 0, high = 0;  // 95 %; low = high = value where there is no degree of freedom
  uint64_t freedom = 0;                 // degrees of freedom of the residuals
};

// value = intercept + slope · contexts by least squares; the interval is that of a new observation (e.g. Draper and
// Smith, Applied Regression Analysis, 1.4 and 3.1). It takes the levels' errors for independent, which sums are not:
// far outside the measured range it is too narrow, and the ratio below says more. Nothing with less than two different
// counts.
struct Line {
  double intercept = 0, slope = 0;
};
std::optional<Line> fit_line(std::span<const Level> levels);
std::optional<Prediction> line_at(std::span<const Level> levels, double contexts);

// The last level, and from there on the growth between the last two: what the document did for its added PSS.
std::optional<double> last_step_at(std::span<const Level> levels, double contexts);
// The last level times a share: what the document did for its device mappings.
std::optional<double> proportional_at(std::span<const Level> levels, double contexts);

// What one measured step added: bytes of weights by kind of block, and bytes of memory.
struct GrowthStep {
  std::vector<double> weights;  // by kind
  double added = 0;
};

// added = Σ ratio[kind] · weights[kind], by weighted least squares with a variance in proportion to the weights (the
// ratio estimator of Cochran, Sampling Techniques, 6.3, for one kind). Kinds that were not seen, or that always came
// together so that they cannot be told apart, share the ratio of all.
class RatioTrend {
 public:
  // All steps have the same number of kinds. Nothing if no step added weights.
  static std::optional<RatioTrend> fit(std::span<const GrowthStep> steps);

  double ratio_of_all() const { return pooled_; }
  // Of a kind, or nothing where it shares that of all.
  std::optional<double> ratio(size_t kind) const;
  // What further blocks of these weights, by kind, would add.
  Prediction rest(std::span<const double> weights) const;

 private:
  double pooled_ = 0;
  std::vector<double> ratios_;      // by kind; empty: all share one
  std::vector<uint8_t> seen_;       // by kind
  std::vector<double> covariance_;  // of the ratios of the kinds seen, without σ², row by row
  std::vector<size_t> index_;       // of a kind among those seen
  double seen_weight_ = 0;
  double variance_ = 0;  // σ² per byte of weights
  uint64_t freedom_ = 0;
};

// The 97.5 % quantile of Student's t.
double student_t(uint64_t freedom);

}  // namespace ridge
