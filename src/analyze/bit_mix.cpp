#include "analyze/bit_mix.h"

#include <algorithm>

namespace ridge {
namespace {

// From one choice of a matrix to the next larger one on its hull.
struct HullStep {
  size_t matrix = 0, to = 0;
  uint64_t bytes = 0;  // more
  double saved = 0;    // loss
  double per_byte() const { return saved / static_cast<double>(bytes); }
};

// Choices on the lower convex hull, by ascending bytes and descending loss.
std::vector<size_t> hull_of(const BitMatrix& m) {
  std::vector<size_t> order(m.choices.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const BitChoice &x = m.choices[a], &y = m.choices[b];
    return x.bytes != y.bytes ? x.bytes < y.bytes : m.loss(a) < m.loss(b);
  });
  auto slope = [&](size_t a, size_t b) {
    return (m.loss(a) - m.loss(b)) / static_cast<double>(m.choices[b].bytes - m.choices[a].bytes);
  };
  std::vector<size_t> hull;
  for (size_t c : order) {
    if (!hull.empty() && !(m.loss(c) < m.loss(hull.back()))) continue;
    if (!hull.empty() && m.choices[c].bytes == m.choices[hull.back()].bytes) continue;
    while (hull.size() > 1 && slope(hull[hull.size() - 2], hull.back()) <= slope(hull.back(), c)) hull.pop_back();
    hull.push_back(c);
  }
  return hull;
}

struct Steps {
  BitMix smallest;
  std::vector<HullStep> steps;  // by loss saved per byte, most first; those of a matrix in its order
};

Steps steps_of(std::span<const BitMatrix> matrices) {
  Steps out;
  for (size_t i = 0; i < matrices.size(); ++i) {
    const BitMatrix& m = matrices[i];
    const std::vector<size_t> hull = hull_of(m);
    out.smallest.chosen.push_back(hull.front());
    out.smallest.bytes += m.choices[hull.front()].bytes;
    out.smallest.loss += m.loss(hull.front());
    for (size_t k = 1; k < hull.size(); ++k) {
      out.steps.push_back({.matrix = i,
                           .to = hull[k],
                           .bytes = m.choices[hull[k]].bytes - m.choices[hull[k - 1]].bytes,
                           .saved = m.loss(hull[k - 1]) - m.loss(hull[k])});
    }
  }
  std::stable_sort(out.steps.begin(), out.steps.end(),
                   [](const HullStep& a, const HullStep& b) { return a.per_byte() > b.per_byte(); });
  return out;
}

void take_step(BitMix& mix, const HullStep& step) {
  mix.chosen[step.matrix] = step.to;
  mix.bytes += step.bytes;
  mix.loss -= step.saved;
}

}  // namespace

uint64_t least_bytes(std::span<const BitMatrix> matrices) { return steps_of(matrices).smallest.bytes; }

std::optional<BitMix> mix_under_bytes(std::span<const BitMatrix> matrices, uint64_t most_bytes) {
  auto [mix, steps] = steps_of(matrices);
  if (mix.bytes > most_bytes) return std::nullopt;
  std::vector<bool> full(matrices.size(), false);
  std::optional<double> bound;
  for (const HullStep& step : steps) {
    if (full[step.matrix]) continue;
    if (mix.bytes + step.bytes <= most_bytes) {
      take_step(mix, step);
      continue;
    }
    full[step.matrix] = true;  // later steps of it begin where this one would have ended
    if (!bound) bound = mix.loss - step.per_byte() * static_cast<double>(most_bytes - mix.bytes);
  }
  mix.bound = bound.value_or(mix.loss);
  return mix;
}

std::optional<BitMix> mix_under_loss(std::span<const BitMatrix> matrices, double most_loss) {
  auto [mix, steps] = steps_of(matrices);
  mix.bound = static_cast<double>(mix.bytes);
  for (const HullStep& step : steps) {
    if (mix.loss <= most_loss) return mix;
    mix.bound = static_cast<double>(mix.bytes) +
                std::min(1.0, (mix.loss - most_loss) / step.saved) * static_cast<double>(step.bytes);
    take_step(mix, step);
  }
  // Differences of losses were added up: a rest that is rounding is none.
  if (mix.loss <= most_loss + 1e-12) return mix;
  return std::nullopt;
}

}  // namespace ridge
