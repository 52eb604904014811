// Samplers against an independent float64 implementation and closed forms, the noise against its description, the
// schedule against golden bytes.
#include "engine/image_sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "engine/image_noise.h"
#include "engine/image_schedule.h"

namespace ridge {
namespace {

// ---- Schedule -------------------------------------------------------------------------------------------------------

// golden/anima-tiny's sigmas: 8 steps, shift 3, made by diffusers.
TEST(ImageSchedule, GoldenSigmas) {
  const std::vector<float> golden = {0x1p+0f,        0x1.e8ba2ep-1f, 0x1.ccccccp-1f,
                                     0x1.aaaaaap-1f, 0x1.8p-1f,      0x1.492492p-1f,
                                     0x1p-1f,        0x1.333334p-2f, 0.0f};
  EXPECT_EQ(flow_sigmas(8, 3), golden);
}

TEST(ImageSchedule, FallsFromOneToNothing) {
  for (uint32_t steps : {1u, 2u, 28u, 50u, 1000u}) {
    for (float shift : {1.0f, 3.0f, 5.0f}) {
      const std::vector<float> sigmas = flow_sigmas(steps, shift);
      ASSERT_EQ(sigmas.size(), steps + 1);
      EXPECT_EQ(sigmas.front(), 1);
      EXPECT_EQ(sigmas.back(), 0);
      for (size_t i = 0; i + 1 < sigmas.size(); ++i) EXPECT_GT(sigmas[i], sigmas[i + 1]);
    }
  }
}

TEST(ImageSchedule, StrengthKeepsTheEnd) {
  const std::vector<float> sigmas = flow_sigmas(10, 3);
  EXPECT_EQ(sigmas_from_strength(sigmas, 1).size(), 11u);
  EXPECT_EQ(sigmas_from_strength(sigmas, 0.6f).size(), 7u);
  EXPECT_EQ(sigmas_from_strength(sigmas, 0.6f).back(), 0);
  EXPECT_EQ(sigmas_from_strength(sigmas, 0.001f).size(), 2u);
}

// ---- Noise ----------------------------------------------------------------------------------------------------------

std::vector<float> noise(uint64_t seed, uint64_t stream, size_t n) {
  std::vector<float> out(n);
  fill_noise(seed, stream, out);
  return out;
}

// By the description in the header, in Python.
TEST(ImageNoise, IsWhatItsDescriptionSays) {
  EXPECT_EQ(noise(0, 0, 4), (std::vector<float>{0x1.f47934p+0f, -0x1.6f889ep-2f, 0x1.4f5c22p+0f, -0x1.d6c102p-1f}));
  EXPECT_EQ(noise(42, 0, 6), (std::vector<float>{0x1.368584p+0f, -0x1.4ec21p-1f, -0x1.c67a9cp+0f, -0x1.59ad36p+0f,
                                                 0x1.033a82p-1f, 0x1.1105dap+0f}));
  EXPECT_EQ(noise(42, 1, 5),
            (std::vector<float>{-0x1.531a88p+1f, 0x1.5dc0e4p-5f, 0x1.436adcp-3f, 0x1.3d13e6p+1f, -0x1.de8854p-1f}));
  EXPECT_EQ(noise(UINT64_MAX, 7, 3), (std::vector<float>{0x1.117e32p-2f, -0x1.c51478p-4f, -0x1.1a5a9ap+0f}));
}

TEST(ImageNoise, IsGaussian) {
  const std::vector<float> x = noise(1, kInitialNoise, 200'000);
  double moments[5] = {};
  for (float v : x) {
    for (int k = 1; k <= 4; ++k) moments[k] += std::pow(v, k) / static_cast<double>(x.size());
  }
  EXPECT_NEAR(moments[1], 0, 0.01);
  EXPECT_NEAR(moments[2], 1, 0.015);
  EXPECT_NEAR(moments[3], 0, 0.03);
  EXPECT_NEAR(moments[4], 3, 0.08);
  double neighbours = 0, streams = 0;
  const std::vector<float> y = noise(1, noise_of_step(0), x.size());
  for (size_t i = 0; i + 1 < x.size(); ++i) {
    neighbours += x[i] * x[i + 1];
    streams += x[i] * y[i];
  }
  EXPECT_NEAR(neighbours / static_cast<double>(x.size()), 0, 0.01);
  EXPECT_NEAR(streams / static_cast<double>(x.size()), 0, 0.01);
}

// ---- Samplers -------------------------------------------------------------------------------------------------------

Result<void> sample_with(const ImageSamplerOptions& options, std::span<const float> sigmas, std::vector<float>& x,
                         double (*denoiser)(double x, double sigma)) {
  return sample_latents(options, sigmas, x, [&](const SampleStep& s, std::span<const float> now, std::span<float> v) {
    for (size_t i = 0; i < now.size(); ++i) {
      v[i] = static_cast<float>((now[i] - denoiser(now[i], s.sigma)) / s.sigma);
    }
    return Result<void>();
  });
}

struct Golden {
  const char* sampler;
  float eta;
  std::vector<double> result;
};

// x₀(x, σ) = 0.8 sin 2x + 0.3 σ, six steps, shift 3, seed 7; float64, from the formulas, in Python.
TEST(ImageSampler, IndependentImplementation) {
  const Golden cases[] = {
      {"euler", 1, {-0.6849115, -0.4107816, 0.6661272, 0.8726781, 0.814519}},
      {"euler_a", 1, {-0.3751826, -0.5045425, -0.2555421, 0.8895256, 0.8921241}},
      {"euler_a", 0.5f, {-0.5807991, -0.657196, -0.1115986, 0.9123297, 0.8549446}},
      {"dpmpp_2m", 1, {-0.6635874, -0.4348602, 0.7044796, 0.8831924, 0.6884934}},
      {"er_sde", 1, {0.7709089, -0.6871668, 0.401547, 0.351053, 0.5310423}},
      {"er_sde", 0, {0.4732636, 0.4245673, 0.500954, 0.5608631, 0.4042166}},
  };
  for (const Golden& c : cases) {
    std::vector<float> x = {-1.5f, -0.4f, 0.1f, 0.9f, 2.2f};
    const ImageSamplerOptions options{.kind = parse_sampler(c.sampler).value(), .seeds = {7}, .eta = c.eta};
    ASSERT_TRUE(sample_with(options, flow_sigmas(6, 3), x, [](double v, double sigma) {
                  return 0.8 * std::sin(2 * v) + 0.3 * sigma;
                }).ok());
    for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], c.result[i], 2e-4) << c.sampler << " " << c.eta << " " << i;
  }
}

// Data all at one point: every sampler ends there.
TEST(ImageSampler, APointIsReached) {
  for (const char* name : {"euler", "euler_a", "dpmpp_2m", "er_sde"}) {
    std::vector<float> x = noise(3, kInitialNoise, 64);
    const ImageSamplerOptions options{.kind = parse_sampler(name).value(), .seeds = {3}};
    ASSERT_TRUE(sample_with(options, flow_sigmas(12, 3), x, [](double, double) { return 0.75; }).ok());
    for (float v : x) EXPECT_NEAR(v, 0.75, 1e-5) << name;
  }
}

// Data N(0, ½²): the best x₀ is known, and the exact flow takes x to x · ½.
double gaussian_denoiser(double x, double sigma) {
  const double alpha = 1 - sigma, variance = 0.25;
  return alpha * variance * x / (alpha * alpha * variance + sigma * sigma);
}

double error_of(SamplerKind kind, uint32_t steps) {
  std::vector<float> x = {1.0f};
  const ImageSamplerOptions options{.kind = kind};
  EXPECT_TRUE(sample_with(options, flow_sigmas(steps, 1), x, gaussian_denoiser).ok());
  return std::fabs(x[0] - 0.5);
}

TEST(ImageSampler, OrdersOfConvergence) {
  const double euler = error_of(SamplerKind::euler, 40) / error_of(SamplerKind::euler, 80);
  EXPECT_NEAR(euler, 2, 0.2);
  const double dpmpp = error_of(SamplerKind::dpmpp_2m, 40) / error_of(SamplerKind::dpmpp_2m, 80);
  EXPECT_GT(dpmpp, 2.8);
  EXPECT_LT(error_of(SamplerKind::dpmpp_2m, 20), error_of(SamplerKind::euler, 20));
}

// The noise that is added keeps the distribution: many samples end with the data's deviation, up to what the steps cost
// (at 100 steps euler_a ends with 0.466, at 400 with 0.49).
TEST(ImageSampler, NoisySamplersKeepTheDistribution) {
  for (SamplerKind kind : {SamplerKind::euler_a, SamplerKind::er_sde}) {
    std::vector<float> x = noise(11, kInitialNoise, 8'000);
    ASSERT_TRUE(sample_with({.kind = kind, .seeds = {11}}, flow_sigmas(400, 3), x, gaussian_denoiser).ok());
    const double squares = std::inner_product(x.begin(), x.end(), x.begin(), 0.0);
    EXPECT_NEAR(std::sqrt(squares / static_cast<double>(x.size())), 0.5, 0.02) << name_of(kind);
  }
}

TEST(ImageSampler, ABatchIsItsSingleRuns) {
  const std::vector<float> sigmas = flow_sigmas(9, 3);
  for (const char* name : {"euler", "euler_a", "dpmpp_2m", "er_sde"}) {
    const SamplerKind kind = parse_sampler(name).value();
    std::vector<float> together;
    std::vector<std::vector<float>> alone;
    for (uint64_t seed : {5u, 6u, 9u}) {
      alone.push_back(noise(seed, kInitialNoise, 33));
      together.insert(together.end(), alone.back().begin(), alone.back().end());
      ASSERT_TRUE(sample_with({.kind = kind, .seeds = {seed}}, sigmas, alone.back(), gaussian_denoiser).ok());
    }
    ASSERT_TRUE(sample_with({.kind = kind, .seeds = {5, 6, 9}}, sigmas, together, gaussian_denoiser).ok());
    for (size_t k = 0; k < 3; ++k) {
      const std::vector<float> part(together.begin() + static_cast<std::ptrdiff_t>(33 * k),
                                    together.begin() + static_cast<std::ptrdiff_t>(33 * (k + 1)));
      EXPECT_EQ(part, alone[k]) << name;
    }
  }
}

TEST(ImageSampler, ErrorsEndTheSampling) {
  std::vector<float> x(4, 1.0f);
  const std::vector<float> sigmas = flow_sigmas(5, 3);
  int evaluations = 0;
  auto fails = [&](const SampleStep& s, std::span<const float>, std::span<float> v) -> Result<void> {
    ++evaluations;
    std::fill(v.begin(), v.end(), 0.0f);
    if (s.step == 2) return io_error("the disk is gone");
    return {};
  };
  const Result<void> failed = sample_latents({}, sigmas, x, fails);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().message, "the disk is gone");
  EXPECT_EQ(evaluations, 3);

  uint32_t seen = 0;
  auto works = [](const SampleStep&, std::span<const float>, std::span<float> v) {
    std::fill(v.begin(), v.end(), 0.0f);
    return Result<void>();
  };
  ASSERT_TRUE(
      sample_latents({}, sigmas, x, works, [&](const SampleStep& s, std::span<const float> now) -> Result<void> {
        EXPECT_EQ(s.step, seen++);
        EXPECT_EQ(s.steps, 5u);
        EXPECT_EQ(now.size(), 4u);
        return {};
      }).ok());
  EXPECT_EQ(seen, 5u);
}

TEST(ImageSampler, NamesAreKnown) {
  for (const char* name : {"euler", "euler_a", "dpmpp_2m", "er_sde"})
    EXPECT_EQ(name_of(parse_sampler(name).value()), name);
  const auto unknown = parse_sampler("heun");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code, ErrorCode::usage);
  EXPECT_NE(unknown.error().message.find("euler, euler_a, dpmpp_2m, er_sde"), std::string::npos);
}

TEST(ImageSampler, GuidanceAndItsInverses) {
  const std::vector<float> conditional = {1, 2, -1}, unconditional = {0.5f, 2, 1};
  std::vector<float> out(3);
  combine_guidance(conditional, unconditional, 4, out);
  EXPECT_EQ(out, (std::vector<float>{2.5f, 2, -7}));
  combine_guidance(conditional, unconditional, 1, out);
  EXPECT_EQ(out, conditional);
  const std::vector<float> x = {1, 2, 3};
  std::vector<float> denoised(3), velocity(3);
  denoised_of(x, conditional, 0.5f, denoised);
  EXPECT_EQ(denoised, (std::vector<float>{0.5f, 1, 3.5f}));
  velocity_of(x, denoised, 0.5f, velocity);
  EXPECT_EQ(velocity, conditional);
}

}  // namespace
}  // namespace ridge
