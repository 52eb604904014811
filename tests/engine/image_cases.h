// Image models for tests: the golden ones beside the repository, run from token ids and noise.
//
//   ImageRun run = ImageRun::of(tiny_options(), golden, "", 8);        // all stages
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "engine/image_model.h"
#include "format/safetensors.h"
#include "tests/golden.h"

namespace ridge::testing {

inline std::string tiny_folder() { return golden::folder() + "/anima-tiny"; }
inline std::string mini_folder() { return std::string(RIDGE_SHARED_DIR) + "/models/anima-mini"; }

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

// v = unguided + scale · (guided − unguided), fused; out may be either.
inline void guide(std::span<const float> unguided, std::span<const float> guided, float scale, std::span<float> out) {
  for (size_t i = 0; i < out.size(); ++i) out[i] = std::fma(scale, guided[i] - unguided[i], unguided[i]);
}

// A step of Euler's from one sigma to the next.
inline void euler_step(float from, float to, std::span<const float> velocity, std::span<float> x) {
  const float step = to - from;
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::fma(step, velocity[i], x[i]);
}

// steps + 1 sigmas, the last 0: 1 … 1 / steps evenly, each s → shift · s / (1 + (shift − 1) · s).
inline std::vector<float> schedule(uint32_t steps, double shift) {
  std::vector<float> out;
  for (uint32_t k = 0; k < steps; ++k) {
    const double s = 1.0 - static_cast<double>(k) / static_cast<double>(steps);
    out.push_back(static_cast<float>(shift * s / (1.0 + (shift - 1.0) * s)));
  }
  out.push_back(0.0f);
  return out;
}

// Euler's method with guidance between prompt 0 and prompt 1; every step's latent.
inline std::vector<std::vector<float>> sample(ImageModel& model, std::vector<float> latent,
                                              std::span<const float> sigmas, float cfg) {
  std::vector<float> v(2 * latent.size());
  const Matrix<float> velocities(v.data(), 2, latent.size());
  std::vector<std::vector<float>> steps;
  for (size_t i = 0; i + 1 < sigmas.size(); ++i) {
    auto done = model.evaluate(i, Matrix<const float>(latent.data(), 1, latent.size()), velocities);
    EXPECT_TRUE(done.ok()) << done.error().message;
    guide(velocities.row_span(1), velocities.row_span(0), cfg, velocities.row_span(0));
    euler_step(sigmas[i], sigmas[i + 1], velocities.row_span(0), latent);
    steps.push_back(latent);
  }
  return steps;
}

}  // namespace ridge::testing
