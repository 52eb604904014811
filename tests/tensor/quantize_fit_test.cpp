#include "tensor/quantize_fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "random_blocks.h"
#include "tensor/blocks.h"
#include "tensor/encode_blocks.h"

namespace ridge::test {
namespace {

std::vector<Type> fitted_types() {
  std::vector<Type> types;
  for (const TypeInfo& info : all_types()) {
    if (can_fit(info.type)) types.push_back(info.type);
  }
  return types;
}

std::vector<float> fitted(Type type, const std::vector<float>& x, const FitOptions& options) {
  std::vector<uint8_t> bytes(row_bytes(type, x.size()));
  fit_row(type, x, options, bytes);
  std::vector<float> out(x.size());
  type_info(type).dequantize(bytes.data(), out.data(), out.size());
  return out;
}

double weighted_error(const std::vector<float>& x, const std::vector<float>& y, const std::vector<float>& w) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double off = static_cast<double>(x[i]) - static_cast<double>(y[i]);
    sum += (w.empty() ? 1.0 : static_cast<double>(w[i])) * off * off;
  }
  return sum;
}

// Rows as weights are, and others: heavy tails, one sign, one huge value.
std::vector<std::vector<float>> rows_of_values() {
  std::mt19937_64 rng(7);
  std::normal_distribution<float> normal(0, 0.05f);
  std::vector<std::vector<float>> rows;
  for (int kind = 0; kind < 4; ++kind) {
    std::vector<float> row(1024);
    for (float& v : row) {
      v = normal(rng);
      if (kind == 1) v = v * v * v * 400;
      if (kind == 2) v = std::fabs(v) + 0.2f;
    }
    if (kind == 3) row[500] = 900;
    rows.push_back(row);
  }
  return rows;
}

std::vector<float> random_weights(size_t count) {
  std::mt19937_64 rng(9);
  std::lognormal_distribution<float> spread(0, 1.5f);
  std::vector<float> w(count);
  for (float& v : w) v = spread(rng);
  return w;
}

TEST(QuantizeFit, KnowsTenTypes) { EXPECT_EQ(fitted_types().size(), 10u); }

TEST(QuantizeFit, EncodesWhatDecodes) {
  std::mt19937_64 rng(3);
  for (Type type : fitted_types()) {
    const BlockInfo& info = *block_info(type);
    const size_t groups = info.block / info.group;
    for (int round = 0; round < 50; ++round) {
      const std::vector<uint8_t> want = random_rows(type, 1, info.block, info.bytes, rng());
      DecodedBlock decoded;
      info.decode(want.data(), decoded);
      RawBlock raw;
      std::vector<uint8_t> got(info.bytes);
      // Codes alone are compared where scales are products; scales below with a unit of 1.
      std::copy_n(decoded.code, info.block, raw.code);
      raw.d = 0x3c00;
      raw.dmin = 0x3c00;
      const bool wide = type == Type::Q3_K || type == Type::Q6_K;
      for (size_t g = 0; g < groups; ++g) {
        raw.scale[g] = static_cast<int16_t>(groups == 1 ? 1 : wide ? int(rng() % 64) - 32 : int(rng() % 16));
        raw.min[g] = static_cast<int16_t>(groups == 1 ? 1 : rng() % 16);
        if (type == Type::Q4_K || type == Type::Q5_K)
          raw.scale[g] = int16_t(rng() % 64), raw.min[g] = int16_t(rng() % 64);
      }
      encode_block(type, raw, got.data());
      DecodedBlock back;
      info.decode(got.data(), back);
      for (size_t i = 0; i < info.block; ++i) ASSERT_EQ(back.code[i], decoded.code[i]) << type_info(type).name << i;
      for (size_t g = 0; g < groups; ++g) {
        ASSERT_EQ(back.scale[g], raw.scale[g]) << type_info(type).name << g;
        if (info.has_min) {
          ASSERT_EQ(std::fabs(back.min[g]), raw.min[g]) << type_info(type).name << g;
        }
      }
    }
  }
}

// Without a search each value is within a step of its group, rounded scales included.
TEST(QuantizeFit, PlainErrsByAStepAtMost) {
  const std::vector<float> row = rows_of_values()[0];
  for (Type type : fitted_types()) {
    const BlockInfo& info = *block_info(type);
    const std::vector<float> back = fitted(type, row, {.effort = FitEffort::plain});
    for (size_t begin = 0; begin < row.size(); begin += info.block) {
      float least = 0, most = 0;
      for (size_t i = begin; i < begin + info.block; ++i) {
        least = std::min(least, row[i]);
        most = std::max(most, row[i]);
      }
      const int levels = type == Type::Q2_K ? 4 : type == Type::Q3_K ? 8 : type == Type::Q6_K ? 64 : 16;
      const float step = 2 * std::max(most, -least) / static_cast<float>(levels - 1);
      for (size_t i = begin; i < begin + info.block; ++i) {
        EXPECT_LE(std::fabs(back[i] - row[i]), step * 1.1f) << type_info(type).name << " " << i;
      }
    }
  }
}

TEST(QuantizeFit, SearchIsNeverWorseThanPlain) {
  for (Type type : fitted_types()) {
    for (const std::vector<float>& row : rows_of_values()) {
      for (const std::vector<float>& w : {std::vector<float>(), random_weights(row.size())}) {
        const double plain = weighted_error(row, fitted(type, row, {.weights = w, .effort = FitEffort::plain}), w);
        const double found = weighted_error(row, fitted(type, row, {.weights = w}), w);
        EXPECT_LE(found, plain * (1 + 1e-5)) << type_info(type).name;
      }
    }
    // On rows as weights are, the search is worth it.
    const std::vector<float> row = rows_of_values()[0], w = random_weights(row.size());
    const double plain = weighted_error(row, fitted(type, row, {.weights = w, .effort = FitEffort::plain}), w);
    EXPECT_LT(weighted_error(row, fitted(type, row, {.weights = w}), w), 0.95 * plain) << type_info(type).name;
  }
}

TEST(QuantizeFit, MoreBitsErrLess) {
  const std::vector<float> row = rows_of_values()[0], w = random_weights(row.size());
  double last = 1e30;
  for (Type type : {Type::Q2_K, Type::Q3_K, Type::Q4_K, Type::Q5_K, Type::Q6_K, Type::Q8_0}) {
    const double error = weighted_error(row, fitted(type, row, {.weights = w}), w);
    EXPECT_LT(error, 0.5 * last) << type_info(type).name;
    last = error;
  }
}

// A weighted column is met better than the same column with a small weight.
TEST(QuantizeFit, WeightsMatter) {
  const std::vector<float> row = rows_of_values()[0];
  for (Type type : {Type::Q2_K, Type::Q3_K, Type::Q4_0, Type::Q4_K}) {
    std::vector<float> heavy(row.size(), 1e-3f), even(row.size(), 1);
    for (size_t i = 0; i < row.size(); i += 4) heavy[i] = 1;
    std::vector<float> only = heavy;
    for (float& v : only) v = v < 1 ? 0.0f : 1.0f;
    EXPECT_LT(weighted_error(row, fitted(type, row, {.weights = heavy}), only),
              0.8 * weighted_error(row, fitted(type, row, {.weights = even}), only))
        << type_info(type).name;
  }
}

TEST(QuantizeFit, SurvivesExtremes) {
  for (Type type : fitted_types()) {
    const std::vector<float> zeros(256, 0.0f);
    EXPECT_EQ(fitted(type, zeros, {}), zeros) << type_info(type).name;
    EXPECT_EQ(fitted(type, zeros, {.weights = zeros}), zeros) << type_info(type).name;
    for (float size : {1e-45f, 1e-40f, 1e-30f, 1e10f, 3e38f}) {
      std::vector<float> row(256, 0.0f);
      for (size_t i = 0; i < row.size(); i += 3) row[i] = i % 2 == 0 ? size : -size;
      for (const std::vector<float>& w : {std::vector<float>(), std::vector<float>(256, 1e30f), zeros}) {
        for (float v : fitted(type, row, {.weights = w})) {
          ASSERT_TRUE(std::isfinite(v)) << type_info(type).name << " " << size;
        }
      }
    }
    // All of one value is met nearly.
    const std::vector<float> same(256, -0.37f);
    for (float v : fitted(type, same, {})) EXPECT_NEAR(v, -0.37f, 0.004f) << type_info(type).name;
  }
}

}  // namespace
}  // namespace ridge::test
