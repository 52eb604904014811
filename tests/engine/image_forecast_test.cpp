// Forecasting in the denoise loop: its settings as text, the two halves of an evaluation, predicted velocities against
// the forecaster run by hand, pictures of a batch, and what several evaluations a step do to it.
#include "engine/image_forecast.h"

#include <algorithm>
#include <cstring>

#include "engine/image_schedule.h"
#include "engine/image_velocity.h"
#include "tests/engine/image_cases.h"

namespace ridge {
namespace {

TEST(ForecastText, SaysEverySettingAndReadsItBack) {
  for (const char* text : {"", "latent", "hidden", "latent,blend=0.3", "hidden,warmup=3,window=2.5,flex=0.125,stop=0.7",
                           "tail=2,degree=5,lambda=0.01,history=9,start-sigma=0.95,fixed-steps=50",
                           "hidden,taylor=0.5,penalise-constant=no,jitter=1e-05,round-window=no,taylor=gap"}) {
    const auto options = parse_forecast(text);
    ASSERT_TRUE(options.ok()) << text << ": " << options.error().message;
    const std::string all = text_of(options.value());
    const auto again = parse_forecast(all);
    ASSERT_TRUE(again.ok()) << all << ": " << again.error().message;
    EXPECT_EQ(text_of(again.value()), all);
    EXPECT_EQ(again.value().form, options.value().form);
  }
  const SpectrumOptions o = parse_forecast("hidden,blend=0.25,taylor=0.5,penalise-constant=no").value().spectrum;
  EXPECT_EQ(o.blend, 0.25);
  EXPECT_EQ(o.taylor_factor, 0.5);
  EXPECT_FALSE(o.penalises_constant);
  EXPECT_EQ(o.degree, spectrum_hidden_preset().degree);
  EXPECT_EQ(text_of(parse_forecast("").value()),
            "latent,warmup=4,window=2,flex=0.5,stop=0.9,tail=0,round-window=no,blend=0.4,degree=3,lambda=1,history=6,"
            "start-sigma=2,fixed-steps=0,taylor=gap,penalise-constant=yes,jitter=0.0001");
}

TEST(ForecastText, RefusesWhatIsNoSetting) {
  for (const char* text : {"x", "latent,hidden", "blend", "blend=", "blend=0.5x", "blend=1.5", "degree=-1", "degree=16",
                           "warmup=1.5", "=1", ",", "latent,,blend=1", "taylor=inf", "tail=4294967295",
                           "penalise-constant=maybe", "window=nan", "latent,"}) {
    const auto options = parse_forecast(text);
    if (std::string_view(text) == "latent,") {
      EXPECT_TRUE(options.ok());
      continue;
    }
    ASSERT_FALSE(options.ok()) << text;
    EXPECT_EQ(options.error().code, ErrorCode::usage) << text;
    EXPECT_EQ(options.error().message.rfind("--spectrum", 0), 0u) << options.error().message;
  }
}

class ImageForecast : public ::testing::Test {
 protected:
  void SetUp() override { RIDGE_SKIP_WITHOUT(test::tiny_options().model, "needs ../shared"); }

  // Two branches of some pictures over eight steps.
  static ImageJob job(uint32_t pictures, bool hidden_states) {
    ImageJob j{.height = 4,
               .width = 6,
               .prompts = {{.qwen = {5, 17, 250, 3}, .t5 = {7, 8, 9, 400, 1}}, {.qwen = {643}, .t5 = {1}}},
               .segments = {},
               .sigmas = {}};
    for (uint32_t p : {0u, 1u}) {
      for (uint32_t i = 0; i < pictures; ++i) j.segments.push_back({p, i});
    }
    const std::vector<float> all = sigmas();
    j.sigmas.assign(all.begin(), all.end() - 1);
    j.hidden_states = hidden_states;
    return j;
  }
  static std::vector<float> sigmas() { return flow_sigmas(8, 3.0f); }
  static std::unique_ptr<ImageModel> model_of(const ImageJob& j) {
    auto model = ImageModel::open(test::tiny_options(), j);
    EXPECT_TRUE(model.ok()) << model.error().message;
    auto prepared = model.value()->prepare();
    EXPECT_TRUE(prepared.ok()) << prepared.error().message;
    return std::move(model).value();
  }
  static std::vector<float> noise(uint32_t pictures) {
    std::vector<float> x;
    uint32_t state = 99;
    for (uint32_t i = 0; i < pictures * 16 * 24; ++i) {
      state = state * 1664525u + 1013904223u;
      x.push_back(static_cast<float>(static_cast<int32_t>(state)) * 0x1p-30f);
    }
    return x;
  }
  static constexpr float kGuidance = 3;

  // All latents of an Euler run, [steps, floats], with so many computed.
  static std::vector<float> run(const ForecastOptions& forecast, uint32_t pictures, std::vector<float> x,
                                uint32_t computed) {
    auto model = model_of(job(pictures, forecast.form == ForecastForm::hidden));
    const std::vector<float> levels = sigmas();
    ImageVelocity velocity(*model,
                           {.pictures = pictures, .guidance = kGuidance, .forecast = forecast, .sigmas = levels});
    std::vector<float> all;
    auto done = sample_latents(
        {.seeds = std::vector<uint64_t>(pictures)}, levels, x,
        [&](const SampleStep& s, std::span<const float> at, std::span<float> v) { return velocity.at(s, at, v); },
        [&](const SampleStep&, std::span<const float> latent) -> Result<void> {
          all.insert(all.end(), latent.begin(), latent.end());
          return {};
        });
    EXPECT_TRUE(done.ok());
    EXPECT_EQ(velocity.steps(), forecast_steps(forecast, levels));
    EXPECT_EQ(std::count(velocity.steps().begin(), velocity.steps().end(), true), computed);
    EXPECT_EQ(model->times().evaluations, computed);
    EXPECT_FALSE(velocity.fell_back());
    return all;
  }
  static bool same(std::span<const float> a, std::span<const float> b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
  }
};

// XX.X.XXX: two of eight are predicted.
constexpr const char *kLatent = "latent,warmup=2,flex=0,tail=3", *kHidden = "hidden,warmup=2,flex=0,tail=3";

TEST_F(ImageForecast, TwoHalvesAreOneEvaluation) {
  auto whole = model_of(job(1, false)), halves = model_of(job(1, true));
  const size_t each = whole->latent_floats();
  EXPECT_EQ(halves->hidden().size(), ImageModel::hidden_floats(halves->shape(), job(1, true)));
  const std::vector<float> x = noise(1);
  std::vector<float> a(2 * each), b(2 * each);
  for (size_t sigma : {0u, 5u}) {
    ASSERT_TRUE(whole->evaluate(sigma, Matrix<const float>(x.data(), 1, each), Matrix<float>(a.data(), 2, each)).ok());
    ASSERT_TRUE(halves->evaluate_hidden(sigma, Matrix<const float>(x.data(), 1, each)).ok());
    ASSERT_TRUE(halves->finish_hidden(sigma, Matrix<float>(b.data(), 2, each)).ok());
    EXPECT_TRUE(same(a, b)) << sigma;
  }
}

TEST_F(ImageForecast, LatentFormIsTheForecasterOnDenoisedLatents) {
  const ForecastOptions forecast = parse_forecast(kLatent).value();
  const std::vector<float> got = run(forecast, 1, noise(1), 6), levels = sigmas();
  auto model = model_of(job(1, false));
  const size_t each = model->latent_floats();
  SpectrumForecaster by_hand(forecast.spectrum, 8, each);
  std::vector<float> x = noise(1), v(2 * each), denoised(each), want;
  for (uint32_t i = 0; i < 8; ++i) {
    if (by_hand.must_compute(i, levels[i])) {
      ASSERT_TRUE(model->evaluate(i, Matrix<const float>(x.data(), 1, each), Matrix<float>(v.data(), 2, each)).ok());
      for (size_t k = 0; k < each; ++k) {
        v[k] = v[each + k] + kGuidance * (v[k] - v[each + k]);
        denoised[k] = x[k] - levels[i] * v[k];
      }
      by_hand.record(i, denoised);
    } else {
      by_hand.forecast(i, denoised);
      for (size_t k = 0; k < each; ++k) v[k] = (x[k] - denoised[k]) / levels[i];
    }
    for (size_t k = 0; k < each; ++k) x[k] += (levels[i + 1] - levels[i]) * v[k];
    want.insert(want.end(), x.begin(), x.end());
  }
  EXPECT_TRUE(same(got, want));
}

TEST_F(ImageForecast, HiddenFormRunsTheLastLayerOnForecastStates) {
  const ForecastOptions forecast = parse_forecast(kHidden).value();
  const std::vector<float> got = run(forecast, 1, noise(1), 6), levels = sigmas();
  auto model = model_of(job(1, true));
  const size_t each = model->latent_floats();
  // Both branches by themselves, as the authors do it.
  const size_t half = model->hidden().size() / 2;
  SpectrumForecaster cond(forecast.spectrum, 8, half), uncond(forecast.spectrum, 8, half);
  std::vector<float> x = noise(1), v(2 * each), want;
  for (uint32_t i = 0; i < 8; ++i) {
    const bool compute = cond.must_compute(i, levels[i]);
    ASSERT_EQ(uncond.must_compute(i, levels[i]), compute);
    if (compute) {
      ASSERT_TRUE(model->evaluate_hidden(i, Matrix<const float>(x.data(), 1, each)).ok());
      cond.record(i, model->hidden().first(half));
      uncond.record(i, model->hidden().last(half));
    } else {
      cond.forecast(i, model->hidden().first(half));
      uncond.forecast(i, model->hidden().last(half));
    }
    ASSERT_TRUE(model->finish_hidden(i, Matrix<float>(v.data(), 2, each)).ok());
    for (size_t k = 0; k < each; ++k) {
      x[k] += (levels[i + 1] - levels[i]) * (v[each + k] + kGuidance * (v[k] - v[each + k]));
    }
    want.insert(want.end(), x.begin(), x.end());
  }
  EXPECT_TRUE(same(got, want));
}

TEST_F(ImageForecast, EachPictureOfABatchIsItsSingleRun) {
  for (const char* text : {kLatent, kHidden}) {
    const ForecastOptions forecast = parse_forecast(text).value();
    const std::vector<float> both = noise(2);
    const size_t each = both.size() / 2;
    const std::vector<float> batch = run(forecast, 2, both, 6);
    for (size_t picture : {0u, 1u}) {
      const std::span<const float> begin = std::span(both).subspan(picture * each, each);
      const std::vector<float> single = run(forecast, 1, {begin.begin(), begin.end()}, 6);
      EXPECT_TRUE(same(std::span(batch).subspan((14 + picture) * each, each), std::span(single).last(each))) << text;
    }
  }
}

TEST_F(ImageForecast, TheHistoryIsNoLongerThanTheStepsThatAreComputed) {
  const std::vector<float> levels = sigmas();
  const size_t hidden = ImageModel::hidden_floats({.width = 64, .patch = 2}, job(1, true));
  const VelocityOptions options{.guidance = kGuidance, .forecast = parse_forecast(kHidden).value(), .sigmas = levels};
  const uint64_t bytes = ImageVelocity::memory_bytes(options, 384, hidden);
  EXPECT_GE(bytes, (6 * hidden + 2 * 384) * sizeof(float));
  EXPECT_LE(bytes, (6 * hidden + 2 * 384) * sizeof(float) + 1024);
}

TEST_F(ImageForecast, SeveralEvaluationsAStepFallBack) {
  auto model = model_of(job(1, false));
  const std::vector<float> levels = sigmas(), x = noise(1);
  ImageVelocity velocity(*model,
                         {.guidance = kGuidance, .forecast = parse_forecast(kLatent).value(), .sigmas = levels});
  std::vector<float> v(x.size());
  for (uint32_t i = 0; i < 8; ++i) {
    for (int twice = 0; twice < 2; ++twice) {
      ASSERT_TRUE(velocity.at({i, 8, levels[i], levels[i + 1]}, x, v).ok());
    }
  }
  EXPECT_TRUE(velocity.fell_back());
  EXPECT_EQ(velocity.steps(), std::vector<bool>(8, true));
  EXPECT_EQ(model->times().evaluations, 16u);
}

TEST_F(ImageForecast, ABudgetCountsTheHistory) {
  ImageOptions options = test::tiny_options();
  options.beside = [](const AnimaConfig& shape) { return uint64_t{shape.width} << 30; };
  options.memory = uint64_t{1} << 30;
  auto model = ImageModel::open(options, job(1, true));
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.error().code, ErrorCode::does_not_fit);
}

}  // namespace
}  // namespace ridge
