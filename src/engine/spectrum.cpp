#include "engine/spectrum.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"

namespace ridge {
namespace {

constexpr uint32_t kHighestDegree = 15;
constexpr size_t kMostTerms = kHighestDegree + 1;

using Row = std::array<double, kMostTerms>;

// T_0 … T_m at x.
Row chebyshev(double x, uint32_t degree) {
  Row t{};
  t[0] = 1;
  t[1] = x;
  for (uint32_t j = 2; j <= degree; ++j) t[j] = 2 * x * t[j - 1] - t[j - 2];
  return t;
}

// Solves A y = b for a symmetric positive definite A of n rows; false if it is not.
bool solve_by_cholesky(std::array<Row, kMostTerms> a, Row b, size_t n, Row& y) {
  for (size_t j = 0; j < n; ++j) {
    for (size_t k = 0; k < j; ++k) a[j][j] -= a[j][k] * a[j][k];
    if (!(a[j][j] > 0) || !std::isfinite(a[j][j])) return false;
    a[j][j] = std::sqrt(a[j][j]);
    for (size_t i = j + 1; i < n; ++i) {
      for (size_t k = 0; k < j; ++k) a[i][j] -= a[i][k] * a[j][k];
      a[i][j] /= a[j][j];
    }
  }
  for (size_t i = 0; i < n; ++i) {
    for (size_t k = 0; k < i; ++k) b[i] -= a[i][k] * b[k];
    b[i] /= a[i][i];
  }
  for (size_t i = n; i-- > 0;) {
    for (size_t k = i + 1; k < n; ++k) b[i] -= a[k][i] * b[k];
    b[i] /= a[i][i];
  }
  y = b;
  return true;
}

}  // namespace

SpectrumOptions spectrum_sampler_preset() { return {}; }

SpectrumOptions spectrum_hidden_preset() {
  SpectrumOptions o;
  o.rule = {.warmup = 5, .window = 2, .flex = 0.75, .stop = 1, .rounds_window = true};
  o.blend = 0.5;
  o.degree = 4;
  o.lambda = 0.1;
  o.history = 100;
  o.jitter = 1e-6;
  return o;
}

std::string_view broken_setting(const SpectrumOptions& o) {
  if (!(o.blend >= 0 && o.blend <= 1)) return "the blend lies between 0 and 1";
  if (o.degree > kHighestDegree) return "the degree is at most 15";
  if (!(o.lambda >= 0 && o.lambda <= 1e6)) return "lambda lies between 0 and 1,000,000";
  if (o.history < 2 || o.history > 1000) return "the history keeps 2 to 1,000 steps";
  if (!(o.rule.window >= 1 && o.rule.window <= 1000)) return "the window lies between 1 and 1,000";
  if (!(o.rule.flex >= 0 && o.rule.flex <= 1000)) return "the flex window lies between 0 and 1,000";
  if (o.rule.warmup > 1'000'000 || o.rule.tail > 1'000'000) return "warm-up and tail have at most 1,000,000 steps";
  if (!(o.rule.stop >= 0 && o.rule.stop <= 1)) return "the stop share lies between 0 and 1";
  if (!(o.jitter > 0 && o.jitter <= 1)) return "the jitter lies above 0, up to 1";
  if (o.taylor_factor && !std::isfinite(*o.taylor_factor)) return "the Taylor factor is a number";
  if (!(o.start_sigma >= 0)) return "the start sigma is at least 0";
  return {};
}

std::vector<double> spectrum_ridge_weights(const SpectrumOptions& options, uint32_t steps,
                                           std::span<const uint32_t> history, uint32_t step) {
  RIDGE_CHECK(broken_setting(options).empty() && !history.empty() && steps > 0, "settings were looked at before");
  const double span = options.fixed_steps > 0 ? options.fixed_steps : steps;
  const size_t terms = options.degree + 1;
  auto row_of = [&](uint32_t at) { return chebyshev(2.0 * at / span - 1, options.degree); };

  std::array<Row, kMostTerms> gram{};
  std::vector<Row> design;
  design.reserve(history.size());
  for (uint32_t at : history) {
    design.push_back(row_of(at));
    for (size_t i = 0; i < terms; ++i) {
      for (size_t j = 0; j < terms; ++j) gram[i][j] += design.back()[i] * design.back()[j];
    }
  }
  double diagonal = 0;
  for (size_t i = 0; i < terms; ++i) {
    if (i > 0 || options.penalises_constant) gram[i][i] += options.lambda;
    diagonal += gram[i][i] / static_cast<double>(terms);
  }
  // Without λ, or with fewer steps than terms, the matrix has no inverse: then a little more on its diagonal, tenfold
  // until it has one. With a share of 1 or more of the mean diagonal it always does.
  Row solution{};
  for (double share = 0; !solve_by_cholesky(gram, row_of(step), terms, solution);) {
    const double more = share == 0 ? options.jitter : share * 9;
    share += more;
    for (size_t i = 0; i < terms; ++i) gram[i][i] += more * diagonal;
    RIDGE_CHECK(share < 1e6, "a Gram matrix with its diagonal raised is positive definite");
  }
  std::vector<double> weights;
  weights.reserve(history.size());
  for (const Row& row : design) {
    double w = 0;
    for (size_t j = 0; j < terms; ++j) w += row[j] * solution[j];
    weights.push_back(w);
  }
  return weights;
}

std::vector<double> spectrum_weights(const SpectrumOptions& options, uint32_t steps, std::span<const uint32_t> history,
                                     uint32_t step) {
  RIDGE_CHECK(history.size() >= 2, "a slope needs two steps");
  std::vector<double> weights = spectrum_ridge_weights(options, steps, history, step);
  for (double& w : weights) w *= options.blend;
  const double last = history[history.size() - 1], previous = history[history.size() - 2];
  const double g = options.taylor_factor ? *options.taylor_factor : (step - last) / (last - previous);
  weights[history.size() - 1] += (1 - options.blend) * (1 + g);
  weights[history.size() - 2] -= (1 - options.blend) * g;
  return weights;
}

template <class T>
BasicSpectrumForecaster<T>::BasicSpectrumForecaster(const SpectrumOptions& options, uint32_t steps, size_t elements)
    : options_(options),
      steps_(steps),
      elements_(elements),
      capacity_(std::min(options.history, steps)),
      schedule_(options.rule, steps),
      features_(capacity_ * elements) {
  RIDGE_CHECK(broken_setting(options).empty() && steps > 0, "settings were looked at before");
  kept_.reserve(capacity_);
}

template <class T>
uint64_t BasicSpectrumForecaster<T>::memory_bytes(const SpectrumOptions& options, uint32_t steps, size_t elements) {
  const uint64_t capacity = std::min(options.history, steps);
  return sizeof(BasicSpectrumForecaster) + capacity * (uint64_t{elements} * sizeof(T) + sizeof(uint32_t));
}

template <class T>
void BasicSpectrumForecaster<T>::begin_run(uint32_t steps) {
  RIDGE_CHECK(steps > 0 && std::min(options_.history, steps) <= capacity_, "the history was sized for as many steps");
  steps_ = steps;
  schedule_ = SpectrumSchedule(options_.rule, steps);
  kept_.clear();
  oldest_ = 0;
  asked_.reset();
  computed_ = predicted_ = 0;
  fell_back_ = false;
}

template <class T>
bool BasicSpectrumForecaster<T>::must_compute(uint32_t step, float sigma) {
  RIDGE_CHECK(step < steps_ && (!asked_ || step >= *asked_), "steps come in order; begin_run() starts anew");
  fell_back_ |= asked_ == step;
  asked_ = step;
  const bool compute = fell_back_ || kept_.size() < 2 || sigma > options_.start_sigma || schedule_.wants(step);
  schedule_.done(step, compute);
  ++(compute ? computed_ : predicted_);
  return compute;
}

template <class T>
std::span<T> BasicSpectrumForecaster<T>::feature(size_t age) {
  return std::span<T>(features_).subspan((oldest_ + age) % capacity_ * elements_, elements_);
}

template <class T>
void BasicSpectrumForecaster<T>::record(uint32_t step, std::span<const T> value) {
  RIDGE_CHECK(value.size() == elements_ && asked_ == step, "a feature of the step that was asked for");
  if (fell_back_) return;
  if (kept_.size() == capacity_) {
    kept_.erase(kept_.begin());
    oldest_ = (oldest_ + 1) % capacity_;
  }
  kept_.push_back(step);
  std::copy(value.begin(), value.end(), feature(kept_.size() - 1).begin());
}

template <class T>
void BasicSpectrumForecaster<T>::forecast(uint32_t step, std::span<T> out) {
  RIDGE_CHECK(out.size() == elements_ && asked_ == step && kept_.size() >= 2, "must_compute() said no");
  const std::vector<double> weights = spectrum_weights(options_, steps_, kept_, step);
  // A stretch at a time, so that the sums stay in the cache while the history goes by once.
  std::array<double, 512> sums;
  for (size_t begin = 0; begin < elements_; begin += sums.size()) {
    const size_t n = std::min(sums.size(), elements_ - begin);
    sums.fill(0);
    for (size_t k = 0; k < kept_.size(); ++k) {
      const T* h = feature(k).data() + begin;
      for (size_t i = 0; i < n; ++i) sums[i] += weights[k] * static_cast<double>(h[i]);
    }
    for (size_t i = 0; i < n; ++i) out[begin + i] = static_cast<T>(sums[i]);
  }
}

template class BasicSpectrumForecaster<float>;
template class BasicSpectrumForecaster<double>;

}  // namespace ridge
