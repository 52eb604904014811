#include "sim/ladder_fit.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/check.h"

namespace ridge::sim {
namespace {

using Vector3 = std::array<double, 3>;
using Matrix3 = std::array<Vector3, 3>;

struct Sample {
  Vector3 x = {};  // 1, contexts, MiB of weights
  double y = 0;    // added MiB
};

Vector3 features(double contexts, double weight_mib) { return {1, contexts, weight_mib}; }

std::vector<Sample> samples_of(const ContextDevice& device) {
  std::vector<Sample> out;
  for (const auto* points : {&device.ladder, &device.pools}) {
    for (const LadderPoint& p : *points) {
      double weights = 0;
      for (uint32_t i = 0; i < p.contexts; ++i) weights += device.contexts[i].weight_mib;
      out.push_back({features(p.contexts, weights), p.added_mib});
    }
  }
  return out;
}

// The inverse of the leading n × n part by Gauss and Jordan with pivots; nothing if it is singular to working
// precision.
std::optional<Matrix3> inverse_of(Matrix3 a, size_t n) {
  Matrix3 inverse = {};
  for (size_t i = 0; i < n; ++i) inverse[i][i] = 1;
  for (size_t col = 0; col < n; ++col) {
    size_t pivot = col;
    for (size_t row = col + 1; row < n; ++row) {
      if (std::abs(a[row][col]) > std::abs(a[pivot][col])) pivot = row;
    }
    if (std::abs(a[pivot][col]) < 1e-9) return std::nullopt;
    std::swap(a[pivot], a[col]);
    std::swap(inverse[pivot], inverse[col]);
    const double scale = 1 / a[col][col];
    for (size_t j = 0; j < n; ++j) {
      a[col][j] *= scale;
      inverse[col][j] *= scale;
    }
    for (size_t row = 0; row < n; ++row) {
      if (row == col) continue;
      const double factor = a[row][col];
      for (size_t j = 0; j < n; ++j) {
        a[row][j] -= factor * a[col][j];
        inverse[row][j] -= factor * inverse[col][j];
      }
    }
  }
  return inverse;
}

std::optional<LadderFit> fit_over(const std::vector<Sample>& samples, size_t n) {
  if (samples.size() < n) return std::nullopt;
  Matrix3 normal = {};
  Vector3 right = {};
  for (const Sample& s : samples) {
    for (size_t i = 0; i < n; ++i) {
      right[i] += s.x[i] * s.y;
      for (size_t j = 0; j < n; ++j) normal[i][j] += s.x[i] * s.x[j];
    }
  }
  auto inverse = inverse_of(normal, n);
  if (!inverse) return std::nullopt;
  Vector3 beta = {};
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) beta[i] += (*inverse)[i][j] * right[j];
  }
  LadderFit fit{.base_mib = beta[0], .per_context_mib = beta[1], .per_weight_mib = beta[2], .points = samples.size()};
  fit.by_weights = n == 3;
  fit.inverse = *inverse;
  double squares = 0;
  for (const Sample& s : samples) {
    const double off = s.y - beta[0] * s.x[0] - beta[1] * s.x[1] - beta[2] * s.x[2];
    squares += off * off;
  }
  if (samples.size() > n) fit.residual_mib = std::sqrt(squares / static_cast<double>(samples.size() - n));
  return fit;
}

// 97.5 % quantile of Student's t, by degrees of freedom.
double student_t(size_t freedom) {
  constexpr std::array kT = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228};
  if (freedom <= kT.size()) return kT[freedom - 1];
  return 1.96 + 2.4 / static_cast<double>(freedom) + 2.8 / static_cast<double>(freedom * freedom);  // to 0.2 % from 11
}

}  // namespace

double LadderFit::mib(double contexts, double weight_mib) const {
  return base_mib + per_context_mib * contexts + per_weight_mib * weight_mib;
}

std::optional<double> LadderFit::interval(double contexts, double weight_mib) const {
  const size_t unknowns = by_weights ? 3 : 2;
  if (points <= unknowns) return std::nullopt;
  const Vector3 x = features(contexts, weight_mib);
  double leverage = 0;
  for (size_t i = 0; i < unknowns; ++i) {
    for (size_t j = 0; j < unknowns; ++j) leverage += x[i] * inverse[i][j] * x[j];
  }
  return student_t(points - unknowns) * residual_mib * std::sqrt(1 + leverage);
}

LadderFit fit_ladder(const ContextDevice& device) {
  const std::vector<Sample> samples = samples_of(device);
  // A context that takes less the more it weighs, or nothing of its own, is an artefact of rungs that say too little.
  if (auto fit = fit_over(samples, 3); fit && fit->per_context_mib >= 0 && fit->per_weight_mib >= 0) return *fit;
  auto fit = fit_over(samples, 2);
  RIDGE_CHECK(fit.has_value(), "a ladder has two different rungs or more");
  return *fit;
}

double extrapolated_added_mib(const ContextDevice& device) {
  const LadderPoint &last = device.ladder.back(), &before = device.ladder[device.ladder.size() - 2];
  const double growth = (last.added_mib - before.added_mib) / static_cast<double>(last.contexts - before.contexts);
  return last.added_mib + growth * static_cast<double>(device.contexts.size() - last.contexts);
}

std::optional<double> extrapolated_mapping_mib(const ContextDevice& device) {
  if (device.mapping_contexts == 0) return std::nullopt;
  return device.mapping_mib / device.mapping_contexts * static_cast<double>(device.contexts.size());
}

double gate_mib(const ContextDevice& device) {
  const LadderPoint* before = nullptr;
  double swap_before = 0;
  for (const LadderPoint& p : device.ladder) {
    const double swap = p.swap_mib + (p.contexts == device.hold_contexts ? device.hold_swap_mib : 0);
    if (swap > device.gate_swap_mib) {
      if (before == nullptr) return p.added_mib * device.gate_swap_mib / swap;
      const double part = (device.gate_swap_mib - swap_before) / (swap - swap_before);
      return std::lerp(before->added_mib, p.added_mib, part);
    }
    before = &p;
    swap_before = swap;
  }
  return device.ladder.back().added_mib;
}

}  // namespace ridge::sim
