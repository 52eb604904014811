// The parts of Anima that need no weights: patches, angles, timesteps, names of tensors, and the sink that stands for
// the zero rows of the context.
#include "model/anima.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/units.h"
#include "format/safetensors_gguf.h"
#include "kernels/choose.h"
#include "model/attend.h"
#include "model/compute.h"
#include "model/outline.h"

namespace ridge {
namespace {

Rows rows_of(std::vector<float>& data, size_t rows, size_t cols) {
  data.assign(rows * cols, 0.0f);
  return Rows(data.data(), rows, cols);
}

TEST(Anima, PatchesHoldChannelsAndGiveBackPixels) {
  const AnimaConfig config{.channels = 3, .patch = 2};
  constexpr uint32_t kHeight = 2, kWidth = 3;  // patches
  std::vector<float> latent(3 * 4 * 6), data, back(latent.size());
  std::iota(latent.begin(), latent.end(), 1.0f);
  Rows patches = rows_of(data, 6, config.patch_inputs());
  patchify(config, latent, kHeight, kWidth, patches);
  // Patch (1, 2): rows 2 and 3, columns 4 and 5 of each channel, channel by channel; then the mask.
  const std::vector<float> want = {17, 18, 23, 24, 41, 42, 47, 48, 65, 66, 71, 72, 0, 0, 0, 0};
  EXPECT_EQ(std::vector<float>(patches.row(5), patches.row(5) + 16), want);
  // Out of it pixel by pixel: put each number where it belongs and the latent comes back.
  std::vector<float> out_data;
  Rows out = rows_of(out_data, 6, config.patch_outputs());
  for (size_t t = 0; t < 6; ++t) {
    for (size_t pixel = 0; pixel < 4; ++pixel) {
      for (size_t c = 0; c < 3; ++c) out.row(t)[3 * pixel + c] = patches.row(t)[4 * c + pixel];
    }
  }
  unpatchify(config, out, kHeight, kWidth, back);
  EXPECT_EQ(back, latent);
}

TEST(Anima, AnglesOfTheGrid) {
  std::vector<float> data;
  Rows angles = rows_of(data, 12, 128);
  grid_angles(3, 4, angles);
  const double base = 10000.0 * std::pow(4.0, 42.0 / 40.0);
  const float* row = angles.row(2 * 4 + 3);  // row 2, column 3
  for (size_t pair = 0; pair < 64; ++pair) {
    double angle = 0;  // of time
    if (pair >= 22 && pair < 43) angle = 2 * std::pow(base, -2.0 * static_cast<double>(pair - 22) / 42);
    if (pair >= 43) angle = 3 * std::pow(base, -2.0 * static_cast<double>(pair - 43) / 42);
    EXPECT_NEAR(row[2 * pair], std::cos(angle), 1e-7) << pair;
    EXPECT_NEAR(row[2 * pair + 1], std::sin(angle), 1e-7) << pair;
  }
}

TEST(Anima, TimestepsAreCosinesThenSines) {
  std::vector<float> out(64);
  timestep_features(0.75, out);
  for (size_t i = 0; i < 32; ++i) {
    const double angle = 0.75 * std::pow(10000.0, -static_cast<double>(i) / 32);
    EXPECT_NEAR(out[i], std::cos(angle), 1e-7);
    EXPECT_NEAR(out[32 + i], std::sin(angle), 1e-7);
  }
}

// Operations alone: there are no weights to read.
class NoWeights : public WeightSource {
 public:
  Result<void> begin_pass(const PassInfo&) override { return {}; }
  Result<Lease> acquire(BlockId) override { return bad_input("there are no weights"); }
  void want(std::span<const BlockId>) override {}
  size_t next_ready(std::span<const BlockId>) override { return 0; }
  Result<void> gather(TensorId, std::span<const uint32_t>, Matrix<float>) override { return {}; }
  SourceStats stats() const override { return {}; }
  const Program& program() const override { return program_; }

 protected:
  void release(BlockId) override {}

 private:
  Program program_;
};

class NoModel : public Model {
 public:
  void forward(Ops&) const override {}
};

// Attention over `real` rows and a sink, and over those rows with zeros behind them up to 512.
struct BothWays {
  std::vector<float> sink, zeros;
};

BothWays attend_both_ways(uint32_t real, float size) {
  constexpr uint32_t kHeads = 2, kDim = 32, kQueries = 70, kWidth = kHeads * kDim;
  const KernelChoice kernels = choose_kernels({}).value();
  ThreadPool pool({.threads = 2});
  NoWeights source;
  NoModel model;
  std::vector<float> scratch(attend_floats(kDim, 2)), workspace(16);
  const Machinery machinery{
      .kernels = &kernels.kernels, .pool = &pool, .source = &source, .workspace = workspace, .attention = scratch};
  Compute ops(model, machinery, {}, {});
  std::vector<float> q_data, k_data, v_data, packed_data, out_data;
  Rows q = rows_of(q_data, kQueries, kWidth), k = rows_of(k_data, kContextRows, kWidth),
       v = rows_of(v_data, kContextRows, kWidth), out = rows_of(out_data, kQueries, kWidth);
  for (size_t i = 0; i < q_data.size(); ++i) q_data[i] = size * std::sin(static_cast<float>(i));
  for (size_t i = 0; i < real * size_t{kWidth}; ++i) {
    k_data[i] = std::cos(static_cast<float>(3 * i));
    v_data[i] = std::sin(static_cast<float>(5 * i)) + 0.5f;
  }
  auto attend = [&](uint32_t rows, std::optional<float> sink) {
    Rows packed = rows_of(packed_data, kHeads, packed_floats(rows, kDim));
    ops.pack_keys(k.slice_rows(0, rows), v.slice_rows(0, rows), kHeads, packed);
    ops.attend({.heads = kHeads, .head_dim = kDim, .keys = rows, .scale = 0.2f, .sink = sink}, q, packed, out);
    return out_data;
  };
  BothWays both;
  both.sink = attend(real, std::log(static_cast<float>(kContextRows - real)));
  both.zeros = attend(kContextRows, std::nullopt);
  return both;
}

TEST(Anima, ASinkStandsForTheZeroRowsOfTheContext) {
  for (uint32_t real : {1u, 13u, 16u, 255u, 300u, 511u}) {
    for (float size : {0.01f, 1.0f, 30.0f}) {
      const BothWays both = attend_both_ways(real, size);
      double difference = 0, norm = 0;
      for (size_t i = 0; i < both.sink.size(); ++i) {
        difference += std::pow(static_cast<double>(both.sink[i]) - both.zeros[i], 2);
        norm += std::pow(static_cast<double>(both.zeros[i]), 2);
      }
      EXPECT_LE(std::sqrt(difference / norm), 1e-6) << real << " rows, queries of " << size;
    }
  }
}

TEST(ImageFiles, TypesThatCannotBeComputedWithAreNamed) {
  const std::string header = R"({"a.weight": {"dtype": "I8", "shape": [4], "data_offsets": [0, 4]}})";
  std::vector<uint8_t> bytes(8 + header.size() + 4);
  bytes[0] = static_cast<uint8_t>(header.size());
  std::copy(header.begin(), header.end(), bytes.begin() + 8);
  auto gguf = as_gguf(parse_safetensors(bytes, "m.safetensors").value());
  ASSERT_FALSE(gguf.ok());
  EXPECT_NE(gguf.error().message.find("'a.weight' is of type I8"), std::string::npos) << gguf.error().message;
}

}  // namespace
}  // namespace ridge
