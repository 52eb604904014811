// Neurons that rest are not read: logits are those of the dense model, byte for byte, whatever is kept where.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <string>

#include "format/ridge_pack.h"
#include "tests/engine/resting_model.h"
#include "tests/golden.h"
#include "tests/temp_folder.h"

namespace ridge {
namespace {

using NeuronLogits = std::vector<std::vector<float>>;

using test::kNeuronLayers;
using test::kNeurons;
using test::NeuronCase;
using test::RestingModel;

// Neurons in any order that the type of the down matrix allows.
std::vector<NeuronOrder> shuffled_orders(const NeuronCase& c) {
  std::vector<NeuronOrder> orders;
  for (uint32_t layer = 0; layer < kNeuronLayers; ++layer) {
    NeuronOrder& order = orders.emplace_back();
    order.layer = layer;
    order.unit = order_unit(c.type);
    order.units.resize(kNeurons / order.unit);
    std::iota(order.units.begin(), order.units.end(), 0u);
    std::shuffle(order.units.begin(), order.units.end(), std::mt19937(layer + 3));
    if (std::is_sorted(order.units.begin(), order.units.end())) std::reverse(order.units.begin(), order.units.end());
    order.touched.assign(kNeurons / c.bundle, 250'000);
  }
  return orders;
}

double largest_difference(const NeuronLogits& a, const NeuronLogits& b) {
  double most = a.size() == b.size() ? 0 : 1e9;
  for (size_t t = 0; t < std::min(a.size(), b.size()); ++t) {
    for (size_t i = 0; i < a[t].size(); ++i) most = std::max(most, std::abs(static_cast<double>(a[t][i] - b[t][i])));
  }
  return most;
}

bool equal_logits(const NeuronLogits& a, const NeuronLogits& b) {
  if (a.empty() || a.size() != b.size()) return false;
  for (size_t t = 0; t < a.size(); ++t) {
    if (std::memcmp(a[t].data(), b[t].data(), a[t].size() * sizeof(float)) != 0) return false;
  }
  return true;
}

class Neurons : public testing::TestWithParam<NeuronCase> {
 protected:
  void SetUp() override {
    test::write_file(folder_ / "model.gguf", RestingModel(GetParam()).build());
    ThreadPool pool({.threads = 2});
    const Gguf source = Gguf::open(folder_ / "model.gguf").value();
    auto pack = [&](const char* name, uint32_t neurons, std::vector<NeuronOrder> orders = {}) {
      RidgePackOptions options{.pool = &pool, .bundle_neurons = neurons};
      options.orders = std::move(orders);
      auto written = write_ridge_pack(source, folder_ / name, options);
      ASSERT_TRUE(written.ok()) << written.error().message;
    };
    pack("plain.ridge", 0);
    pack("bundled.ridge", GetParam().bundle);
    pack("ordered.ridge", GetParam().bundle, shuffled_orders(GetParam()));
    want_ = run("model.gguf", {.threads = 1, .isa = Isa::scalar}, 1);
    ASSERT_EQ(want_.size(), ids_.size());
  }

  NeuronLogits run(const std::string& name, EngineOptions options, uint32_t rows = 8) {
    options.path = folder_ / name;
    options.default_context = 32;
    options.logits_rows = rows;
    options.need_tokenizer = false;
    auto engine = Engine::open(options);
    EXPECT_TRUE(engine.ok()) << engine.error().message;
    if (!engine.ok()) return {};
    NeuronLogits logits = golden::all_logits(*engine.value(), ids_);
    use_ = engine.value()->neuron_use();
    stats_ = engine.value()->source().stats();
    placement_ = engine.value()->plan().placement;
    in_order_ = on_demand_ = 0;
    for (const Block& b : engine.value()->plan().program.blocks)
      (b.on_demand ? on_demand_ : in_order_) += b.memory_bytes;
    return logits;
  }

  test::TempFolder folder_;
  const std::vector<TokenId> ids_ = {1, 17, 30, 5, 9, 95, 33, 2, 2, 71, 87, 0, 45};
  NeuronLogits want_;
  NeuronUse use_;
  SourceStats stats_;
  Placement placement_;
  uint64_t in_order_ = 0, on_demand_ = 0;  // bytes
};

TEST_P(Neurons, SameBytesAsDense) {
  EXPECT_TRUE(equal_logits(run("plain.ridge", {.threads = 2}), want_));
  EXPECT_EQ(use_.groups, 0u);
  for (const bool all : {true, false}) {
    for (const int threads : {1, 3}) {
      for (const uint32_t rows : {1u, 8u}) {
        EXPECT_TRUE(equal_logits(run("bundled.ridge", {.threads = threads, .all_neurons = all}, rows), want_))
            << threads << " threads, " << rows << " rows" << (all ? ", all neurons" : "");
        EXPECT_EQ(use_.touched < use_.groups, !all) << use_.touched << " of " << use_.groups;
        EXPECT_GT(use_.touched, 0u);
      }
    }
  }
}

TEST_P(Neurons, EveryIsaAndExactNumerics) {
  for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512, Isa::neon}) {
    if (!choose_kernels({.isa = isa}).ok()) continue;
    EXPECT_TRUE(equal_logits(run("bundled.ridge", {.threads = 2, .isa = isa}), want_)) << name_of(isa);
  }
  const NeuronLogits exact = run("model.gguf", {.threads = 1, .numerics = Numerics::exact});
  EXPECT_TRUE(equal_logits(run("bundled.ridge", {.threads = 2, .numerics = Numerics::exact}), exact));
}

TEST_P(Neurons, EveryPlacementPolicyAndIoEngine) {
  (void)run("bundled.ridge", {.threads = 2, .most_pinned = 0});
  const uint64_t in_order = in_order_, some = on_demand_ / 4;
  for (const uint64_t pinned : {uint64_t{0}, in_order + some, in_order + 3 * some}) {
    for (const auto policy : {std::optional<ExpertPolicy>(), std::optional(ExpertPolicy::importance)}) {
      for (const IoKind io : {IoKind::automatic, IoKind::buffered}) {
        EXPECT_TRUE(equal_logits(
            run("bundled.ridge", {.threads = 2, .io = io, .most_pinned = pinned, .expert_policy = policy}, 4), want_))
            << pinned << " pinned";
        EXPECT_TRUE(placement_.streams()) << pinned << " pinned of " << in_order + on_demand_;
      }
    }
  }
}

// Another order of neurons is another order of summation, and nothing else.
TEST_P(Neurons, AnyOrderOfNeuronsIsTheSameModel) {
  const NeuronLogits ordered = run("ordered.ridge", {.threads = 1, .isa = Isa::scalar}, 1);
  float largest = 0;
  for (const std::vector<float>& row : want_) {
    for (const float v : row) largest = std::max(largest, std::abs(v));
  }
  EXPECT_LT(largest_difference(ordered, want_), 1e-5 * static_cast<double>(largest)) << "largest logit " << largest;
  for (const bool all : {true, false}) {
    for (const std::optional<uint64_t> pinned : {std::optional<uint64_t>(), std::optional<uint64_t>(0)}) {
      EXPECT_TRUE(
          equal_logits(run("ordered.ridge", {.threads = 3, .most_pinned = pinned, .all_neurons = all}), ordered));
      EXPECT_EQ(use_.touched < use_.groups, !all);
    }
  }
}

// Of what is in no cache only touched bundles are read.
TEST_P(Neurons, RestingBundlesAreNotRead) {
  (void)run("bundled.ridge", {.threads = 2, .most_pinned = 0, .all_neurons = true}, 1);
  const uint64_t all = stats_.experts_asked, all_bytes = stats_.bytes_read;
  (void)run("bundled.ridge", {.threads = 2, .most_pinned = 0}, 1);
  EXPECT_EQ(all, uint64_t{kNeuronLayers} * (kNeurons / GetParam().bundle) * ids_.size());
  EXPECT_EQ(stats_.experts_asked, use_.touched);
  EXPECT_LT(stats_.experts_asked, all);
  EXPECT_LT(stats_.bytes_read, all_bytes);
}

INSTANTIATE_TEST_SUITE_P(, Neurons,
                         testing::Values(NeuronCase{"reglu-llama", Type::F16, 16},
                                         NeuronCase{"reglu-llama", Type::Q8_0, 64},
                                         NeuronCase{"reglu-llama", Type::Q4_K, 256},
                                         NeuronCase{"arcee", Type::Q8_0, 64}),
                         [](const auto& test) {
                           return std::string(test.param.architecture[0] == 'a' ? "arcee" : "reglu") + "_" +
                                  std::string(type_info(test.param.type).name);
                         });

}  // namespace
}  // namespace ridge
