// Image models for tests: the tiny golden one beside the repository and the demo, run from token ids and noise.
//
//   ImageRun run = ImageRun::of(tiny_options(), golden, "", 8);        // all stages
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "engine/image_model.h"
#include "engine/image_sampler.h"
#include "format/safetensors.h"
#include "tests/golden.h"

namespace ridge::test {

inline std::string tiny_folder() { return golden::folder() + "/anima-tiny"; }
inline std::string mini_folder() { return RIDGE_TEST_DATA "/../../demo/anima-mini"; }

inline ImageOptions tiny_options() {
  return {.model = tiny_folder() + "/anima-tiny.safetensors",
          .text_encoder = tiny_folder() + "/qwen3-tiny.safetensors",
          .threads = 2};
}

inline std::vector<float> floats(const Safetensors& file, const std::string& name) {
  const SafeTensor* t = file.find(name);
  EXPECT_NE(t, nullptr) << name;
  return t == nullptr ? std::vector<float>() : read_floats(file, *t, 1 << 24).value();
}

inline std::vector<int32_t> integers(const Safetensors& file, const std::string& name) {
  const SafeTensor* t = file.find(name);
  EXPECT_NE(t, nullptr) << name;
  return t == nullptr ? std::vector<int32_t>() : read_integers(file, *t, 1 << 16).value();
}

inline PromptIds prompt_ids(const Safetensors& file, const std::string& prefix) {
  return {.qwen = integers(file, prefix + ".qwen_ids"), .t5 = integers(file, prefix + ".t5_ids")};
}

// ‖got − want‖ / ‖want‖
inline double relative_l2(std::span<const float> got, std::span<const float> want) {
  EXPECT_EQ(got.size(), want.size());
  double difference = 0, norm = 0;
  for (size_t i = 0; i < std::min(got.size(), want.size()); ++i) {
    const double d = static_cast<double>(got[i]) - static_cast<double>(want[i]);
    difference += d * d;
    norm += static_cast<double>(want[i]) * static_cast<double>(want[i]);
  }
  return std::sqrt(difference / norm);
}

inline std::vector<float> flat(Matrix<const float> m) {
  std::vector<float> out;
  for (size_t r = 0; r < m.rows; ++r) out.insert(out.end(), m.row(r), m.row(r) + m.cols);
  return out;
}

// Euler's method with guidance between prompt 0 and prompt 1; every step's latent.
inline std::vector<std::vector<float>> sample(ImageModel& model, std::vector<float> latent,
                                              std::span<const float> sigmas, float cfg) {
  std::vector<float> both(2 * latent.size());
  const Matrix<float> velocities(both.data(), 2, latent.size());
  std::vector<std::vector<float>> steps;
  auto evaluate = [&](const SampleStep& step, std::span<const float> x, std::span<float> v) -> Result<void> {
    RIDGE_TRY(model.evaluate(step.step, Matrix<const float>(x.data(), 1, x.size()), velocities));
    combine_guidance(velocities.row_span(0), velocities.row_span(1), cfg, v);
    return {};
  };
  auto after_step = [&](const SampleStep&, std::span<const float> x) -> Result<void> {
    steps.emplace_back(x.begin(), x.end());
    return {};
  };
  auto done = sample_latents({.kind = SamplerKind::euler}, sigmas, latent, evaluate, after_step);
  EXPECT_TRUE(done.ok()) << done.error().message;
  return steps;
}

}  // namespace ridge::test
