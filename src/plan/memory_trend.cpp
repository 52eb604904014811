#include "plan/memory_trend.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace ridge {
namespace {

// Inverts a symmetric positive definite matrix [n, n] by Gauss–Jordan elimination; false if it is singular, as seen
// from the size of its own diagonal.
bool invert(std::vector<double>& a, size_t n) {
  constexpr double kSingular = 1e-9;
  std::vector<double> inverse(n * n, 0), scale(n);
  for (size_t i = 0; i < n; ++i) {
    inverse[i * n + i] = 1;
    scale[i] = a[i * n + i];
  }
  for (size_t p = 0; p < n; ++p) {
    const double pivot = a[p * n + p];
    if (pivot <= kSingular * scale[p]) return false;
    for (size_t c = 0; c < n; ++c) {
      a[p * n + c] /= pivot;
      inverse[p * n + c] /= pivot;
    }
    for (size_t r = 0; r < n; ++r) {
      const double factor = a[r * n + p];
      if (r == p || factor == 0) continue;
      for (size_t c = 0; c < n; ++c) {
        a[r * n + c] -= factor * a[p * n + c];
        inverse[r * n + c] -= factor * inverse[p * n + c];
      }
    }
  }
  a = std::move(inverse);
  return true;
}

double sum(std::span<const double> values) { return std::accumulate(values.begin(), values.end(), 0.0); }

Prediction with_interval(double value, double deviation, uint64_t freedom) {
  if (freedom == 0) return {value, value, value, 0};
  const double half = student_t(freedom) * deviation;
  return {value, value - half, value + half, freedom};
}

}  // namespace

double student_t(uint64_t freedom) {
  constexpr std::array kTable = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                 2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
                                 2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
  RIDGE_CHECK(freedom > 0, "a quantile of t has degrees of freedom");
  if (freedom <= kTable.size()) return kTable[freedom - 1];
  // The expansion in 1/ν to its second power (Abramowitz and Stegun 26.7.5): right to 0.0002 from 30 on.
  constexpr double kZ = 1.959964, kZ3 = kZ * kZ * kZ, kZ5 = kZ3 * kZ * kZ;
  const double v = static_cast<double>(freedom);
  return kZ + (kZ3 + kZ) / (4 * v) + (5 * kZ5 + 16 * kZ3 + 3 * kZ) / (96 * v * v);
}

std::optional<Line> fit_line(std::span<const Level> levels) {
  const auto n = static_cast<double>(levels.size());
  double x = 0, y = 0, xx = 0, xy = 0;
  for (const Level& l : levels) {
    x += l.contexts / n;
    y += l.value / n;
  }
  for (const Level& l : levels) {
    xx += (l.contexts - x) * (l.contexts - x);
    xy += (l.contexts - x) * (l.value - y);
  }
  if (levels.size() < 2 || xx <= 0) return std::nullopt;
  const double slope = xy / xx;
  return Line{y - slope * x, slope};
}

std::optional<Prediction> line_at(std::span<const Level> levels, double contexts) {
  const auto line = fit_line(levels);
  if (!line) return std::nullopt;
  const auto n = static_cast<double>(levels.size());
  double x = 0, xx = 0, residuals = 0;
  for (const Level& l : levels) x += l.contexts / n;
  for (const Level& l : levels) {
    xx += (l.contexts - x) * (l.contexts - x);
    const double residual = l.value - line->intercept - line->slope * l.contexts;
    residuals += residual * residual;
  }
  const uint64_t freedom = levels.size() - 2;
  const double variance = freedom > 0 ? residuals / static_cast<double>(freedom) : 0;
  const double deviation = std::sqrt(variance * (1 + 1 / n + (contexts - x) * (contexts - x) / xx));
  return with_interval(line->intercept + line->slope * contexts, deviation, freedom);
}

std::optional<double> last_step_at(std::span<const Level> levels, double contexts) {
  if (levels.size() < 2) return std::nullopt;
  const Level &before = levels[levels.size() - 2], &last = levels.back();
  if (last.contexts <= before.contexts) return std::nullopt;
  return last.value + (last.value - before.value) / (last.contexts - before.contexts) * (contexts - last.contexts);
}

std::optional<double> proportional_at(std::span<const Level> levels, double contexts) {
  if (levels.empty() || levels.back().contexts <= 0) return std::nullopt;
  return levels.back().value / levels.back().contexts * contexts;
}

std::optional<RatioTrend> RatioTrend::fit(std::span<const GrowthStep> steps) {
  RatioTrend trend;
  double added = 0;
  std::vector<const GrowthStep*> used;
  for (const GrowthStep& s : steps) {
    const double weight = sum(s.weights);
    if (weight <= 0) continue;
    used.push_back(&s);
    trend.seen_weight_ += weight;
    added += s.added;
  }
  if (used.empty()) return std::nullopt;
  trend.pooled_ = added / trend.seen_weight_;

  const size_t kinds = used[0]->weights.size();
  trend.seen_.assign(kinds, 0);
  trend.index_.assign(kinds, 0);
  std::vector<size_t> seen;
  for (size_t k = 0; k < kinds; ++k) {
    trend.seen_[k] = std::any_of(used.begin(), used.end(), [&](const GrowthStep* s) { return s->weights[k] > 0; });
    trend.index_[k] = seen.size();
    if (trend.seen_[k]) seen.push_back(k);
  }
  // The normal equations of Σ (added − Σ ratio · weights)² / Σ weights.
  const size_t n = seen.size();
  std::vector<double> normal(n * n, 0), right(n, 0);
  for (const GrowthStep* s : used) {
    const double total = sum(s->weights);
    for (size_t i = 0; i < n; ++i) {
      right[i] += s->weights[seen[i]] * s->added / total;
      for (size_t j = 0; j < n; ++j) normal[i * n + j] += s->weights[seen[i]] * s->weights[seen[j]] / total;
    }
  }
  size_t parameters = 1;
  if (used.size() >= n && invert(normal, n)) {
    parameters = n;
    trend.covariance_ = std::move(normal);
    trend.ratios_.assign(kinds, 0);
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) trend.ratios_[seen[i]] += trend.covariance_[i * n + j] * right[j];
    }
  }
  double residuals = 0;
  for (const GrowthStep* s : used) {
    double expected = 0;
    for (size_t k = 0; k < kinds; ++k) expected += trend.ratio(k).value_or(trend.pooled_) * s->weights[k];
    residuals += (s->added - expected) * (s->added - expected) / sum(s->weights);
  }
  trend.freedom_ = used.size() - parameters;
  trend.variance_ = trend.freedom_ > 0 ? residuals / static_cast<double>(trend.freedom_) : 0;
  return trend;
}

std::optional<double> RatioTrend::ratio(size_t kind) const {
  if (ratios_.empty() || !seen_[kind]) return std::nullopt;
  return ratios_[kind];
}

Prediction RatioTrend::rest(std::span<const double> weights) const {
  RIDGE_CHECK(weights.size() == seen_.size(), "the kinds that were fitted");
  const size_t n = static_cast<size_t>(std::count(seen_.begin(), seen_.end(), 1));
  double value = 0, shared = 0, own = 0;
  std::vector<double> by_index(n, 0);
  for (size_t k = 0; k < weights.size(); ++k) {
    value += ratio(k).value_or(pooled_) * weights[k];
    if (ratio(k)) {
      by_index[index_[k]] = weights[k];
    } else {
      shared += weights[k];
    }
  }
  for (size_t i = 0; i < n && !ratios_.empty(); ++i) {
    for (size_t j = 0; j < n; ++j) own += by_index[i] * covariance_[i * n + j] * by_index[j];
  }
  // The spread of the blocks to come, and that of the ratios.
  const double variance = variance_ * (sum(weights) + own + shared * shared / seen_weight_);
  return with_interval(value, std::sqrt(variance), freedom_);
}

}  // namespace ridge
