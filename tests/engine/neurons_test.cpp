// Neurons that rest are not read: logits are those of the dense model, byte for byte, whatever is kept where.
#include <cstring>
#include <string>

#include "format/ridge_pack.h"
#include "tests/format/gguf_builder.h"
#include "tests/golden.h"
#include "tests/temp_folder.h"
#include "tests/tensor/random_blocks.h"

namespace ridge {
namespace {

using NeuronLogits = std::vector<std::vector<float>>;

struct NeuronCase {
  const char* architecture;
  Type type;
  uint32_t bundle;
};

constexpr uint32_t kNeuronWidth = 256, kNeurons = 512, kNeuronWords = 96, kNeuronLayers = 2;

test::Bytes floats_as_bytes(const std::vector<float>& values) {
  test::Bytes bytes(sizeof(float) * values.size());
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// A model in which neurons rest: in a reglu-llama biases of the gates see to it (a third of the groups never fires,
// the others seldom), in an arcee, which has none, every second group has no weights.
class RestingModel {
 public:
  RestingModel(const NeuronCase& c) : c_(c) {
    const std::string arch = c.architecture;
    gated_ = arch == "reglu-llama";
    gguf_.string("general.architecture", arch);
    gguf_.number<uint32_t>(arch + ".block_count", kNeuronLayers).number<uint32_t>(arch + ".context_length", 64);
    gguf_.number<uint32_t>(arch + ".embedding_length", kNeuronWidth);
    gguf_.number<uint32_t>(arch + ".feed_forward_length", kNeurons);
    gguf_.number<uint32_t>(arch + ".attention.head_count", 8).number<uint32_t>(arch + ".attention.head_count_kv", 2);
    matrix("token_embd.weight", kNeuronWords, kNeuronWidth);
    for (uint32_t i = 0; i < kNeuronLayers; ++i) layer("blk." + std::to_string(i) + ".");
    vector("output_norm.weight", std::vector<float>(kNeuronWidth, 1.0f));
    matrix("output.weight", kNeuronWords, kNeuronWidth);
  }
  test::Bytes build() const { return gguf_.build(); }

 private:
  void layer(const std::string& block) {
    vector(block + "attn_norm.weight", std::vector<float>(kNeuronWidth, 1.0f));
    matrix(block + "attn_q.weight", kNeuronWidth, kNeuronWidth);
    matrix(block + "attn_k.weight", kNeuronWidth / 4, kNeuronWidth);
    matrix(block + "attn_v.weight", kNeuronWidth / 4, kNeuronWidth);
    matrix(block + "attn_output.weight", kNeuronWidth, kNeuronWidth);
    vector(block + "ffn_norm.weight", std::vector<float>(kNeuronWidth, 1.0f));
    if (gated_) {
      matrix(block + "ffn_gate.weight", kNeurons, kNeuronWidth);
      vector(block + "ffn_gate.bias", gate_biases());
      vector(block + "ffn_up.bias", std::vector<float>(kNeurons, 0.25f));
      vector(block + "ffn_down.bias", std::vector<float>(kNeuronWidth, -0.125f));
    }
    matrix(block + "ffn_up.weight", kNeurons, kNeuronWidth, !gated_);
    matrix(block + "ffn_down.weight", kNeuronWidth, kNeurons);
  }
  std::vector<float> gate_biases() const {
    std::vector<float> biases(kNeurons);
    for (uint32_t n = 0; n < kNeurons; ++n) biases[n] = n / c_.bundle % 3 == 0 ? -1e4f : -2.5f;
    return biases;
  }
  void vector(const std::string& name, const std::vector<float>& values) {
    gguf_.tensor({.name = name, .shape = {values.size()}, .data = floats_as_bytes(values)});
  }
  void matrix(const std::string& name, uint64_t rows, uint64_t cols, bool every_second_group = false) {
    const uint64_t stride = row_bytes(c_.type, cols);
    test::Bytes bytes(rows * stride);
    if (c_.type == Type::F16) {
      std::normal_distribution<float> normal(0, 1 / std::sqrt(static_cast<float>(cols)));
      for (size_t i = 0; i < bytes.size(); i += 2) {
        const uint16_t half = f32_to_f16(normal(rng_));
        std::memcpy(bytes.data() + i, &half, 2);
      }
    } else {
      for (uint8_t& b : bytes) b = static_cast<uint8_t>(rng_());
      const TypeInfo& info = type_info(c_.type);
      const float scale = (c_.type == Type::Q8_0 ? 0.014f : 0.004f) / std::sqrt(static_cast<float>(cols));
      for (size_t b = 0; b < bytes.size(); b += info.bytes) {
        for (const size_t offset : scale_offsets(c_.type)) set_scale(f32_to_f16(scale), bytes.data() + b + offset);
      }
    }
    for (uint64_t row = 0; every_second_group && row < rows; ++row) {
      if (row / c_.bundle % 2 == 0) std::memset(bytes.data() + row * stride, 0, stride);
    }
    gguf_.tensor({.name = name, .shape = {cols, rows}, .type = c_.type, .data = std::move(bytes)});
  }

  NeuronCase c_;
  bool gated_ = false;
  std::mt19937_64 rng_{11};
  test::GgufBuilder gguf_;
};

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
    auto pack = [&](const char* name, uint32_t neurons) {
      auto written = write_ridge_pack(source, folder_ / name, {.pool = &pool, .bundle_neurons = neurons});
      ASSERT_TRUE(written.ok()) << written.error().message;
    };
    pack("plain.ridge", 0);
    pack("bundled.ridge", GetParam().bundle);
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
