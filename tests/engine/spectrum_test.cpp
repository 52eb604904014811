// Spectrum's forecasts against golden values in float64, its schedules, and what resets and falls back.
#include "engine/spectrum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/golden.h"

namespace ridge {
namespace {

using nlohmann::json;

std::string pattern(const SpectrumRule& rule, uint32_t steps) {
  std::string text;
  for (bool computed : spectrum_steps(steps, rule)) text += computed ? 'X' : '.';
  return text;
}

size_t computed(const SpectrumRule& rule, uint32_t steps) {
  const std::string text = pattern(rule, steps);
  return static_cast<size_t>(std::count(text.begin(), text.end(), 'X'));
}

TEST(SpectrumSchedule, PublishedPatterns) {
  const SpectrumRule sampler = spectrum_sampler_preset().rule;
  EXPECT_EQ(pattern(sampler, 28), "XXXX.X.X..X..X...X...X...XXX");
  EXPECT_EQ(computed(sampler, 28), 13u);
  EXPECT_EQ(computed(sampler, 20), 11u);
  EXPECT_EQ(computed(sampler, 30), 14u);
  EXPECT_EQ(computed(sampler, 50), 19u);
  SpectrumRule hidden = spectrum_hidden_preset().rule;
  EXPECT_EQ(pattern(hidden, 50), "XXXXX.X.X..X...X....X....X.....X......X.......X...");
  hidden.flex = 3;
  EXPECT_EQ(pattern(hidden, 50), "XXXXX.X....X.......X..........X.............X.....");
}

TEST(SpectrumSchedule, TailAndWindowOfOne) {
  SpectrumRule rule;
  rule.stop = 1;
  rule.tail = 3;
  EXPECT_EQ(pattern(rule, 28), "XXXX.X.X..X..X...X...X...XXX");  // the same as stop 0.9 here
  rule.window = 1;
  rule.flex = 0;
  EXPECT_EQ(pattern(rule, 6), "XXXXXX");
}

// x_k of the golden file: 3 × 4, u = k / N.
template <class T>
std::vector<T> golden_feature(uint32_t k, uint32_t steps) {
  const double u = static_cast<double>(k) / steps;
  std::vector<T> x;
  for (int j = 0; j < 4; ++j) x.push_back(static_cast<T>(std::sin((j + 1) * u)));
  for (int j = 0; j < 4; ++j) x.push_back(static_cast<T>(std::cos((j + 1) * u)));
  for (int j = 0; j < 4; ++j) x.push_back(static_cast<T>(std::pow(u, j + 1) - 0.5 * u + 0.1 * j));
  return x;
}

SpectrumOptions variant(SpectrumOptions options, const std::string& name) {
  options.fixed_steps = name.rfind("tau50", 0) == 0 ? 50 : 0;
  if (name.find("fixed") != name.npos) options.taylor_factor = 0.5;
  return options;
}

// Runs a whole trajectory and compares every prediction. Returns how many there were.
template <class T>
size_t follow(const SpectrumOptions& options, uint32_t steps, const json& entries, double tolerance) {
  BasicSpectrumForecaster<T> spectrum(options, steps, 12);
  size_t next = 0;
  for (uint32_t step = 0; step < steps; ++step) {
    if (spectrum.must_compute(step, 0.5f)) {
      spectrum.record(step, golden_feature<T>(step, steps));
      continue;
    }
    const json& entry = entries.at(next++);
    EXPECT_EQ(entry.at("step").get<uint32_t>(), step);
    std::vector<T> out(12);
    spectrum.forecast(step, out);
    for (size_t i = 0; i < out.size(); ++i) {
      const double expected = entry.at("prediction")[i / 4][i % 4].get<double>();
      EXPECT_NEAR(static_cast<double>(out[i]), expected, tolerance * std::max(1.0, std::fabs(expected)))
          << "step " << step << ", element " << i;
    }
    const auto history = entry.at("history").get<std::vector<uint32_t>>();
    const auto expected = entry.at("weights").get<std::vector<double>>();
    const std::vector<double> weights = spectrum_ridge_weights(options, steps, history, step);
    EXPECT_EQ(weights.size(), expected.size());
    for (size_t k = 0; k < weights.size(); ++k) EXPECT_NEAR(weights[k], expected[k], 1e-10) << "step " << step;
  }
  EXPECT_EQ(spectrum.predicted(), next);
  return next;
}

TEST(Spectrum, GoldenForecastsOfBothForms) {
  RIDGE_SKIP_WITHOUT(golden::folder() + "/spectrum.json", "needs ../shared/golden");
  const json golden = golden::load("spectrum.json");
  size_t followed = 0;
  for (const char* form : {"sampler", "official"}) {
    const SpectrumOptions preset = form[0] == 's' ? spectrum_sampler_preset() : spectrum_hidden_preset();
    const auto steps = golden.at(form).at("N").get<uint32_t>();
    EXPECT_EQ(pattern(preset.rule, steps), golden.at(form).at("pattern").get<std::string>());
    for (const auto& [name, entries] : golden.at(form).at("variants").items()) {
      SCOPED_TRACE(std::string(form) + " " + name);
      EXPECT_EQ(follow<double>(variant(preset, name), steps, entries, 1e-10), entries.size());
      EXPECT_EQ(follow<float>(variant(preset, name), steps, entries, 1e-5), entries.size());
      ++followed;
    }
  }
  EXPECT_GE(followed, 6u);
}

// Without λ a polynomial of the degree is forecast exactly; and where T₀ is not penalised, a constant is.
TEST(Spectrum, ExactOnPolynomials) {
  SpectrumOptions o;
  o.lambda = 0;
  o.blend = 1;
  const std::vector<uint32_t> history = {0, 1, 3, 4, 7};
  const std::vector<double> w = spectrum_ridge_weights(o, 20, history, 9);
  for (int power = 0; power <= 3; ++power) {
    double sum = 0;
    for (size_t k = 0; k < w.size(); ++k) sum += w[k] * std::pow(history[k] / 20.0, power);
    EXPECT_NEAR(sum, std::pow(9 / 20.0, power), 1e-9) << power;
  }
  o.lambda = 1;
  double penalised = 0, free = 0;
  for (double v : spectrum_ridge_weights(o, 20, history, 9)) penalised += v;
  o.penalises_constant = false;
  for (double v : spectrum_ridge_weights(o, 20, history, 9)) free += v;
  EXPECT_LT(penalised, 0.9);
  EXPECT_GT(free, 0.95);
}

// Weights are the coefficient form in another order: C = (XᵀX + λI)⁻¹ XᵀH, forecast T(τ*) C.
TEST(Spectrum, FewerStepsThanTermsStillHaveWeights) {
  SpectrumOptions o;
  o.lambda = 0;
  o.degree = 15;
  const std::vector<uint32_t> history = {3, 4};
  for (double w : spectrum_ridge_weights(o, 28, history, 5)) EXPECT_TRUE(std::isfinite(w));
  const std::vector<double> all = spectrum_weights(o, 28, history, 5);
  EXPECT_NEAR(all[1] - all[0], 0.6 * 3 + 0.4 * 0, 2);  // mostly the slope: 1 + g and −g with g = 1
}

// blend 0: the line through the last two.
TEST(Spectrum, TaylorAloneIsALine) {
  SpectrumOptions o;
  o.blend = 0;
  const std::vector<uint32_t> history = {2, 5, 9};
  EXPECT_EQ(spectrum_weights(o, 28, history, 11), (std::vector<double>{0, -0.5, 1.5}));
  o.taylor_factor = 0.5;
  EXPECT_EQ(spectrum_weights(o, 28, history, 20), (std::vector<double>{0, -0.5, 1.5}));
}

std::vector<float> run(SpectrumForecaster& spectrum, uint32_t steps, float offset) {
  std::vector<float> all;
  for (uint32_t step = 0; step < steps; ++step) {
    std::vector<float> x = golden_feature<float>(step, steps);
    for (float& v : x) v += offset;
    if (spectrum.must_compute(step, 0.5f)) {
      spectrum.record(step, x);
    } else {
      spectrum.forecast(step, x);
    }
    all.insert(all.end(), x.begin(), x.end());
  }
  return all;
}

TEST(Spectrum, ANewRunStartsFromNothing) {
  SpectrumForecaster spectrum({}, 28, 12), fresh({}, 28, 12);
  run(spectrum, 28, 100);
  spectrum.begin_run(28);
  EXPECT_EQ(spectrum.computed(), 0u);
  EXPECT_EQ(run(spectrum, 28, 0), run(fresh, 28, 0));
  EXPECT_EQ(spectrum.computed(), 13u);
  EXPECT_EQ(spectrum.predicted(), 15u);
  spectrum.begin_run(20);
  run(spectrum, 20, 0);
  EXPECT_EQ(spectrum.computed(), 11u);
}

TEST(Spectrum, SeveralEvaluationsAStepFallBack) {
  SpectrumForecaster spectrum({}, 28, 12);
  const std::vector<float> x(12, 1.0f);
  for (uint32_t step = 0; step < 28; ++step) {
    for (int evaluation = 0; evaluation < 2; ++evaluation) {
      ASSERT_TRUE(spectrum.must_compute(step, 0.5f));
      spectrum.record(step, x);
    }
  }
  EXPECT_TRUE(spectrum.fell_back());
  EXPECT_EQ(spectrum.predicted(), 0u);
  spectrum.begin_run(28);
  EXPECT_FALSE(spectrum.fell_back());
}

TEST(Spectrum, NothingIsForecastAboveTheStartSigma) {
  SpectrumOptions o;
  o.start_sigma = 0.7f;
  SpectrumForecaster spectrum(o, 28, 1);
  const std::vector<float> x(1, 1.0f);
  std::vector<float> out(1);
  uint32_t first_predicted = 28;
  for (uint32_t step = 0; step < 28; ++step) {
    const float sigma = 1 - static_cast<float>(step) / 28;
    if (spectrum.must_compute(step, sigma)) {
      spectrum.record(step, x);
    } else {
      spectrum.forecast(step, out);
      EXPECT_LE(sigma, 0.7f);
      first_predicted = std::min(first_predicted, step);
    }
  }
  EXPECT_GE(first_predicted, 9u);
  EXPECT_GT(spectrum.predicted(), 5u);
}

TEST(Spectrum, MemoryIsTheHistory) {
  const SpectrumOptions sampler = spectrum_sampler_preset(), hidden = spectrum_hidden_preset();
  const uint64_t small = SpectrumForecaster::memory_bytes(sampler, 28, 65536);
  EXPECT_GE(small, 6u * 65536 * 4);
  EXPECT_LT(small, 6u * 65536 * 4 + 1024);
  // No more entries than steps.
  EXPECT_LT(SpectrumForecaster::memory_bytes(hidden, 20, 1000), 21u * 4000);
}

TEST(Spectrum, SettingsAreChecked) {
  EXPECT_EQ(broken_setting(spectrum_sampler_preset()), "");
  EXPECT_EQ(broken_setting(spectrum_hidden_preset()), "");
  auto broken = [](auto change) {
    SpectrumOptions o;
    change(o);
    return !broken_setting(o).empty();
  };
  EXPECT_TRUE(broken([](auto& o) { o.blend = 1.5; }));
  EXPECT_TRUE(broken([](auto& o) { o.blend = NAN; }));
  EXPECT_TRUE(broken([](auto& o) { o.degree = 16; }));
  EXPECT_TRUE(broken([](auto& o) { o.lambda = -1; }));
  EXPECT_TRUE(broken([](auto& o) { o.history = 1; }));
  EXPECT_TRUE(broken([](auto& o) { o.rule.window = 0.5; }));
  EXPECT_TRUE(broken([](auto& o) { o.rule.flex = NAN; }));
  EXPECT_TRUE(broken([](auto& o) { o.rule.stop = 2; }));
  EXPECT_TRUE(broken([](auto& o) { o.jitter = 0; }));
  EXPECT_TRUE(broken([](auto& o) { o.taylor_factor = INFINITY; }));
}

}  // namespace
}  // namespace ridge
