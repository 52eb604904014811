#include "analyze/bit_mix.h"

#include <gtest/gtest.h>

#include <random>

namespace ridge::test {
namespace {

BitMatrix matrix(double scale, std::vector<std::pair<uint64_t, double>> choices) {
  BitMatrix m{.name = "m", .elements = 1, .scale = scale, .choices = {}};
  for (const auto& [bytes, error] : choices) m.choices.push_back({.type = Type::Q4_K, .bytes = bytes, .error = error});
  return m;
}

std::vector<BitMatrix> random_matrices(uint64_t seed) {
  std::mt19937_64 rng(seed);
  std::uniform_real_distribution<double> unit(0.1, 1);
  std::vector<BitMatrix> out;
  for (int i = 0; i < 6; ++i) {
    const uint64_t size = 10 + rng() % 50;
    double error = unit(rng);
    BitMatrix m = matrix(unit(rng) * 5, {});
    for (uint64_t bits = 2; bits <= 5; ++bits, error *= 0.6 * unit(rng)) {
      m.choices.push_back({.type = Type::Q4_K, .bytes = bits * size, .error = error});
    }
    out.push_back(m);
  }
  return out;
}

// Least loss of all mixes under the size.
double least_loss(std::span<const BitMatrix> matrices, uint64_t most) {
  double least = 1e30;
  for (int code = 0; code < 4096; ++code) {
    uint64_t bytes = 0;
    double loss = 0;
    for (size_t i = 0; i < 6; ++i) {
      const size_t c = static_cast<size_t>(code >> (2 * i)) & 3;
      bytes += matrices[i].choices[c].bytes;
      loss += matrices[i].loss(c);
    }
    if (bytes <= most) least = std::min(least, loss);
  }
  return least;
}

TEST(BitMix, LiesBetweenTheBoundAndTheBestMixNearly) {
  double worst = 1;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const std::vector<BitMatrix> matrices = random_matrices(seed);
    const uint64_t least = least_bytes(matrices);
    EXPECT_FALSE(mix_under_bytes(matrices, least - 1).has_value());
    for (uint64_t room : {least, least * 5 / 4, least * 3 / 2, least * 2}) {
      const std::optional<BitMix> mix = mix_under_bytes(matrices, room);
      ASSERT_TRUE(mix.has_value());
      uint64_t bytes = 0;
      double loss = 0;
      for (size_t i = 0; i < matrices.size(); ++i) {
        bytes += matrices[i].choices[mix->chosen[i]].bytes;
        loss += matrices[i].loss(mix->chosen[i]);
      }
      EXPECT_EQ(bytes, mix->bytes);
      EXPECT_LE(bytes, room);
      EXPECT_NEAR(loss, mix->loss, 1e-9);
      const double best = least_loss(matrices, room);
      EXPECT_LE(mix->bound, best + 1e-9);
      EXPECT_GE(mix->loss, best - 1e-9);
      worst = std::max(worst, mix->loss / best);
    }
  }
  EXPECT_LT(worst, 2.0);
}

TEST(BitMix, GivesBitsWhereTheyCount) {
  const std::vector<BitMatrix> matrices = {matrix(1, {{20, 0.1}, {40, 0.01}}), matrix(10, {{20, 0.1}, {40, 0.01}})};
  const std::optional<BitMix> mix = mix_under_bytes(matrices, 65);
  ASSERT_TRUE(mix.has_value());
  EXPECT_EQ(mix->chosen, (std::vector<size_t>{0, 1}));
  EXPECT_NEAR(mix->bound, 0.2 - 0.0045 * 5, 1e-12);
}

// A choice above the line between its neighbours is never taken, nor one that is larger and worse.
TEST(BitMix, LeavesOutWhatIsAboveTheHull) {
  const std::vector<BitMatrix> matrices = {matrix(1, {{10, 1.0}, {20, 0.9}, {25, 0.95}, {30, 0.1}})};
  EXPECT_EQ(mix_under_bytes(matrices, 29)->chosen[0], 0u);
  EXPECT_EQ(mix_under_bytes(matrices, 30)->chosen[0], 3u);
}

TEST(BitMix, FindsTheSizeOfALoss) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const std::vector<BitMatrix> matrices = random_matrices(seed);
    const double most = mix_under_bytes(matrices, UINT64_MAX)->loss;
    EXPECT_FALSE(mix_under_loss(matrices, most * 0.9).has_value());
    for (double limit : {most * 1.01, most * 2, most * 5}) {
      const std::optional<BitMix> mix = mix_under_loss(matrices, limit);
      ASSERT_TRUE(mix.has_value());
      EXPECT_LE(mix->loss, limit);
      EXPECT_LE(mix->bound, static_cast<double>(mix->bytes));
    }
  }
}

}  // namespace
}  // namespace ridge::test
