// From a map to what a cache is trained by: which numbers go where, and which maps are refused.
#include "analyze/cache_training.h"

#include <gtest/gtest.h>

#include "analyze/neuron_order.h"
#include "engine/state_file.h"
#include "format/ridge_pack.h"
#include "tests/engine/resting_model.h"
#include "tests/golden.h"
#include "tests/temp_folder.h"

namespace ridge::test {
namespace {

constexpr uint32_t kSmall = 16;

// Every other neuron fires at every token.
float other_bias(uint32_t neuron) { return neuron % 2 == 0 ? 3.0f : -1e4f; }

class CacheTrainingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    write_file(model_path(), RestingModel({"reglu-llama", Type::F16, kSmall}, other_bias).build());
    const auto model = Model::open(model_path()).value();
    map_.model = "m";
    map_.fingerprint = model_fingerprint(*model).value();
    map_.source = source_fingerprint(*model).value();
    map_.neurons = kSmall;
    map_.tasks = {{"a", 100}, {"b", 300}};
    for (uint32_t layer = 0; layer < kNeuronLayers; ++layer) {
      map_.fired.emplace_back();
      for (uint32_t n = 0; n < kNeurons; ++n) map_.fired.back().push_back(n < kNeurons / 2 ? 40 : 4);
      for (uint32_t g = 0; g < kNeurons / kSmall; ++g) {
        const double touch = g < kNeurons / kSmall / 2 ? 0.8 : 0.1;
        map_.blocks.push_back({.kind = MapKind::neurons, .name = "g", .layer = layer, .index = g, .bytes = 1});
        map_.blocks.back().touch = {touch, touch / 2};
      }
    }
  }
  std::string model_path() const { return folder_ / "model.gguf"; }
  std::string pack(uint32_t bundle, bool ordered) {
    const std::string path = folder_ / (ordered ? "ordered.ridge" : "plain.ridge");
    ThreadPool pool({.threads = 1});
    RidgePackOptions options{.pool = &pool, .bundle_neurons = bundle};
    const Gguf gguf = Gguf::open(model_path()).value();
    if (ordered) options.orders = orders_by_touch(gguf, map_, "map.json", bundle).value();
    EXPECT_TRUE(write_ridge_pack(gguf, path, options).ok());
    return path;
  }
  Result<CacheTraining> train(const std::string& path) {
    const auto model = Model::open(path).value();
    return cache_training(map_, "map.json", *model, path);
  }

  TempFolder folder_;
  ImportanceMap map_;
};

TEST_F(CacheTrainingTest, BundlesCutAsTheMapHaveItsTouches) {
  const auto training = train(pack(kSmall, false));
  ASSERT_TRUE(training.ok()) << training.error().message;
  ASSERT_EQ(training.value().touch.size(), kNeuronLayers);
  const std::vector<float>& first = training.value().touch.front();
  ASSERT_EQ(first.size(), 2u * kNeurons / kSmall);
  EXPECT_EQ(first[0], 0.8f);
  EXPECT_EQ(first[1], 0.4f);
  EXPECT_EQ(first.back(), 0.05f);
}

// Reckoned from what fired: those that fire often first, and task a twice as often as b.
TEST_F(CacheTrainingTest, OtherBundlesAreReckonedFromWhatFired) {
  const auto training = train(pack(2 * kSmall, true));
  ASSERT_TRUE(training.ok()) << training.error().message;
  const std::vector<float>& first = training.value().touch.front();
  ASSERT_EQ(first.size(), kNeurons / kSmall);
  EXPECT_GT(first[0], 3 * first[first.size() - 2]);
  EXPECT_NEAR(first[first.size() - 2], 2 * first.back(), 1e-6);
}

TEST_F(CacheTrainingTest, OtherModelsAndOtherNeuronsAreRefused) {
  EXPECT_EQ(train(model_path()).error().code, ErrorCode::usage) << "no pack: nothing is on demand";
  const std::string plain = pack(kSmall, false);
  map_.fired.front().pop_back();
  EXPECT_EQ(train(plain).error().code, ErrorCode::bad_input);
  map_.source ^= 1;
  EXPECT_EQ(train(plain).error().code, ErrorCode::bad_input);
  map_.source = 0;
  EXPECT_NE(train(plain).error().message.find("make it anew"), std::string::npos);
}

}  // namespace
}  // namespace ridge::test
