// Orders of neurons by an importance map, and what they save.
#include "analyze/neuron_order.h"

#include <numeric>

#include "format/ridge_pack.h"
#include "tests/engine/resting_model.h"
#include "tests/golden.h"
#include "tests/temp_folder.h"

namespace ridge {
namespace {

constexpr uint32_t kSmallBundle = 16, kHotEvery = 32;

// One neuron of 32 fires at most tokens, the others at none: every bundle of 64 in the file's order has hot ones.
float scattered_bias(uint32_t neuron) { return neuron % kHotEvery == 5 ? 3.0f : -1e4f; }

class OrderByMap : public ::testing::Test {
 protected:
  void make(Type type, uint32_t bundle) {
    test::write_file(model(), test::RestingModel({"reglu-llama", type, bundle}, scattered_bias).build());
    ActivationStats stats(bundle);
    auto engine = open("model.gguf", &stats);
    stats.begin_task("all");
    stats.begin_pass();
    ASSERT_TRUE(engine->evaluate(ids_).ok());
    stats.end_pass(ids_.size());
    map_ = importance_map(engine->model(), stats).value();
  }
  std::unique_ptr<Engine> open(const char* name, ProductProbe* probe = nullptr) {
    EngineOptions options{.path = folder_ / name, .threads = 1};
    options.default_context = 32;
    options.need_tokenizer = false;
    options.probe = probe;
    return std::move(Engine::open(options).value());
  }
  // Share of bundles touched by tokens read one at a time.
  double touched(const char* name, const std::vector<NeuronOrder>& orders, uint32_t bundle) {
    ThreadPool pool({.threads = 1});
    RidgePackOptions options{.pool = &pool, .bundle_neurons = bundle};
    options.orders = orders;
    EXPECT_TRUE(write_ridge_pack(Gguf::open(model()).value(), folder_ / name, options).ok());
    auto engine = open(name);
    for (const TokenId& id : ids_) EXPECT_TRUE(engine->evaluate({&id, 1}).ok());
    return static_cast<double>(engine->neuron_use().touched) / static_cast<double>(engine->neuron_use().groups);
  }
  std::string model() const { return folder_ / "model.gguf"; }

  test::TempFolder folder_;
  const std::vector<TokenId> ids_ = {1, 17, 30, 5, 9, 95, 33, 2, 2, 71, 87, 0, 45};
  ImportanceMap map_;
};

TEST_F(OrderByMap, HotNeuronsOfAFloatModelShareABundle) {
  make(Type::F16, kSmallBundle);
  const auto orders = orders_by_touch(Gguf::open(model()).value(), map_, "map.json", kSmallBundle).value();
  ASSERT_EQ(orders.size(), test::kNeuronLayers);
  EXPECT_EQ(orders[0].unit, 1u);
  for (uint32_t place = 0; place < test::kNeurons / kHotEvery; ++place)
    EXPECT_EQ(orders[0].neuron(place) % kHotEvery, 5u) << place;
  EXPECT_EQ(orders[0].neuron(test::kNeurons / kHotEvery), 0u) << "those that never fire keep the order of the file";
  const double before = touched("plain.ridge", {}, kSmallBundle), after = touched("map.ridge", orders, kSmallBundle);
  EXPECT_GT(before, 0.4);
  EXPECT_NEAR(after, kSmallBundle / static_cast<double>(test::kNeurons), 0.001) << "one bundle of a layer";
  EXPECT_NEAR(mean_touch(orders[0]), after, 0.02) << "what the pack foretells";
  const auto pack = open_ridge_pack(folder_ / "map.ridge").value();
  ASSERT_EQ(pack.bundles.orders.size(), test::kNeuronLayers);
  EXPECT_EQ(pack.bundles.orders[1].units, orders[1].units);
  EXPECT_EQ(pack.bundles.orders[1].touched, orders[1].touched);
  EXPECT_EQ(orders_by_touch(Gguf::open(model()).value(), map_, "map.json", kSmallBundle).value()[1].units,
            orders[1].units);
}

// Units of 32 hold a hot neuron each: nothing to be won, and nothing is lost.
TEST_F(OrderByMap, QuantisedColumnsMoveByBlocks) {
  make(Type::Q8_0, 64);
  const auto orders = orders_by_touch(Gguf::open(model()).value(), map_, "map.json", 64).value();
  EXPECT_EQ(orders[0].unit, 32u);
  EXPECT_EQ(orders[0].units.size(), test::kNeurons / 32);
  EXPECT_EQ(touched("map.ridge", orders, 64), touched("plain.ridge", {}, 64));
}

TEST_F(OrderByMap, GroupsThatWereCountedComeOutSo) {
  make(Type::F16, kSmallBundle);
  // Two neurons of each group of 16 fire at half of the tokens, always together.
  for (auto& layer : map_.fired) {
    for (uint32_t n = 0; n < test::kNeurons; ++n) layer[n] = n % 16 < 2 ? 500 : 0;
  }
  map_.tasks = {{"all", 1000}};
  for (MapBlock& b : map_.blocks) b.touch = {0.5};
  const auto orders = orders_by_touch(Gguf::open(model()).value(), map_, "map.json", kSmallBundle).value();
  // Sixteen neurons of a bundle, which come in eights of two that are one: 1 − 2^−8.
  EXPECT_NEAR(orders[0].touch(0), 1 - 1.0 / 256, 1e-5);
  EXPECT_EQ(orders[0].touch(4), 0);
}

TEST_F(OrderByMap, AnotherModelsMapIsRefused) {
  make(Type::F16, kSmallBundle);
  auto refuse = [&](const ImportanceMap& map, const char* word) {
    auto orders = orders_by_touch(Gguf::open(model()).value(), map, "map.json", kSmallBundle);
    ASSERT_FALSE(orders.ok());
    EXPECT_EQ(orders.error().code, ErrorCode::bad_input);
    EXPECT_NE(orders.error().message.find(word), std::string::npos) << orders.error().message;
  };
  ImportanceMap map = map_;
  map.fired.pop_back();
  refuse(map, "layer 1");
  map = map_;
  map.fired[1].push_back(0);
  refuse(map, "513 neurons of layer 1");
  map = map_;
  map.fired[0][3] = 14;
  refuse(map, "14 of 13 tokens");
  map.fired.clear();
  refuse(map, "no neuron");
  const auto engine = open("model.gguf");
  EXPECT_TRUE(require_same_model(map_, "map.json", engine->model(), "model.gguf").ok());
  map_.fingerprint ^= 1;
  map_.model = "another";
  auto same = require_same_model(map_, "map.json", engine->model(), "model.gguf");
  ASSERT_FALSE(same.ok());
  EXPECT_NE(same.error().message.find("'another'"), std::string::npos) << same.error().message;
}

}  // namespace
}  // namespace ridge
