// Models of the types below 3.5 bits, for which no golden logits exist: a tiny llama whose linear layers have the type,
// and its twin with the same values as F32.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "tests/format/gguf_builder.h"
#include "tests/golden.h"
#include "tests/temp_folder.h"
#include "tests/tensor/random_blocks.h"

namespace ridge {
namespace {

using Logits = std::vector<std::vector<float>>;
using ::ridge::test::Bytes;

constexpr uint32_t kWidth = 256, kFfn = 512, kVocabulary = 96, kDepth = 2;

std::vector<float> values_of(Type type, const Bytes& blocks) {
  const TypeInfo& info = type_info(type);
  std::vector<float> values(blocks.size() / info.bytes * info.block);
  info.dequantize(blocks.data(), values.data(), values.size());
  return values;
}

void set_scales(Type type, uint16_t half, Bytes& blocks) {
  const TypeInfo& info = type_info(type);
  for (size_t b = 0; b < blocks.size(); b += info.bytes) {
    for (const size_t offset : scale_offsets(type)) set_scale(half, blocks.data() + b + offset);
    if (type == Type::IQ1_M) set_iq1_m_scale(half, blocks.data() + b);
  }
}

// Blocks of random bits whose scales make outputs of about the size of inputs.
Bytes random_weights(Type type, uint64_t rows, uint64_t cols, std::mt19937_64& rng) {
  Bytes blocks(rows * row_bytes(type, cols));
  for (uint8_t& byte : blocks) byte = static_cast<uint8_t>(rng());
  set_scales(type, f32_to_f16(1.0f), blocks);
  double squares = 0;
  const std::vector<float> values = values_of(type, blocks);
  for (const float v : values) squares += static_cast<double>(v) * static_cast<double>(v);
  const double wanted = 1 / std::sqrt(static_cast<double>(cols));
  const double rms = std::sqrt(squares / static_cast<double>(values.size()));
  set_scales(type, f32_to_f16(static_cast<float>(wanted / rms)), blocks);
  return blocks;
}

// The model in `type`, or with the same values as F32.
class TinyLlama {
 public:
  TinyLlama(Type type, bool as_f32) : type_(type), as_f32_(as_f32) {
    gguf_.string("general.architecture", "llama");
    gguf_.number<uint32_t>("llama.block_count", kDepth).number<uint32_t>("llama.context_length", 64);
    gguf_.number<uint32_t>("llama.embedding_length", kWidth).number<uint32_t>("llama.feed_forward_length", kFfn);
    gguf_.number<uint32_t>("llama.attention.head_count", 8).number<uint32_t>("llama.attention.head_count_kv", 2);
    gguf_.number<uint32_t>("llama.vocab_size", kVocabulary);
    gguf_.number<float>("llama.attention.layer_norm_rms_epsilon", 1e-5f);
    linear("token_embd.weight", kVocabulary, kWidth);
    for (uint32_t i = 0; i < kDepth; ++i) {
      const std::string block = "blk." + std::to_string(i) + ".";
      norm(block + "attn_norm.weight");
      linear(block + "attn_q.weight", kWidth, kWidth);
      linear(block + "attn_k.weight", kWidth / 4, kWidth);
      linear(block + "attn_v.weight", kWidth / 4, kWidth);
      linear(block + "attn_output.weight", kWidth, kWidth);
      norm(block + "ffn_norm.weight");
      linear(block + "ffn_gate.weight", kFfn, kWidth);
      linear(block + "ffn_up.weight", kFfn, kWidth);
      linear(block + "ffn_down.weight", kWidth, kFfn);
    }
    norm("output_norm.weight");
    linear("output.weight", kVocabulary, kWidth);
  }

  Bytes build() const { return gguf_.build(); }

 private:
  static Bytes bytes_of(const std::vector<float>& values) {
    Bytes bytes(4 * values.size());
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
  }
  void norm(const std::string& name) {
    gguf_.tensor({.name = name, .shape = {kWidth}, .data = bytes_of(std::vector<float>(kWidth, 1.0f))});
  }
  void linear(const std::string& name, uint64_t rows, uint64_t cols) {
    Bytes blocks = random_weights(type_, rows, cols, rng_);
    if (as_f32_) {
      gguf_.tensor({.name = name, .shape = {cols, rows}, .data = bytes_of(values_of(type_, blocks))});
    } else {
      gguf_.tensor({.name = name, .shape = {cols, rows}, .type = type_, .data = std::move(blocks)});
    }
  }

  Type type_;
  bool as_f32_;
  std::mt19937_64 rng_{7};
  ::ridge::test::GgufBuilder gguf_;
};

bool same_bytes(const Logits& a, const Logits& b) {
  if (a.size() != b.size()) return false;
  for (size_t t = 0; t < a.size(); ++t) {
    if (std::memcmp(a[t].data(), b[t].data(), a[t].size() * sizeof(float)) != 0) return false;
  }
  return true;
}

// Largest difference over the standard deviation of `want`.
double deviation(const Logits& got, const Logits& want) {
  double worst = 0, sum = 0, squares = 0, count = 0;
  for (size_t t = 0; t < want.size(); ++t) {
    for (size_t i = 0; i < want[t].size(); ++i) {
      const double w = static_cast<double>(want[t][i]);
      worst = std::max(worst, std::abs(w - static_cast<double>(got[t][i])));
      sum += w, squares += w * w, count += 1;
    }
  }
  return worst / std::sqrt(squares / count - sum / count * (sum / count));
}

class LowBit : public ::testing::TestWithParam<Type> {
 protected:
  void SetUp() override {
    test::write_file(folder_ / "typed.gguf", TinyLlama(GetParam(), false).build());
    test::write_file(folder_ / "f32.gguf", TinyLlama(GetParam(), true).build());
  }

  Logits run(const std::string& name, EngineOptions options, uint32_t rows = 8) {
    options.path = folder_ / name;
    options.default_context = 32;
    options.logits_rows = rows;
    options.need_tokenizer = false;
    auto engine = Engine::open(options);
    EXPECT_TRUE(engine.ok()) << engine.error().message;
    if (!engine.ok()) return {};
    streamed_ = engine.value()->plan().placement.streams();
    const std::vector<TokenId> ids = {1, 17, 30, 5, 9, 95, 33, 2, 2, 71, 87, 0, 45, 46, 47, 20, 12};
    return golden::all_logits(*engine.value(), ids);
  }

  test::TempFolder folder_;
  bool streamed_ = false;
};

// Dequantised values and the order of sums are the same, so every bit is.
TEST_P(LowBit, ExactNumericsEqualTheF32Model) {
  const Logits want = run("f32.gguf", {.threads = 1, .numerics = Numerics::exact});
  ASSERT_EQ(want.size(), 17u);
  EXPECT_TRUE(std::isfinite(want.back().front()));
  const Logits got = run("typed.gguf", {.threads = 1, .numerics = Numerics::exact});
  EXPECT_TRUE(same_bytes(got, want)) << "deviation " << deviation(got, want);
}

TEST_P(LowBit, DefaultNumericsStayClose) {
  const Logits want = run("f32.gguf", {.threads = 1, .numerics = Numerics::exact});
  EXPECT_LE(deviation(run("typed.gguf", {.threads = 1}), want), 0.1);
}

TEST_P(LowBit, SameBytesOnEveryIsaAndInEveryBudget) {
  const Logits want = run("typed.gguf", {.threads = 1, .isa = Isa::scalar});
  for (const Isa isa : {Isa::avx2, Isa::avx512, Isa::neon}) {
    if (!choose_kernels({.isa = isa}).ok()) continue;
    for (const uint32_t rows : {1u, 8u}) {
      EXPECT_TRUE(same_bytes(run("typed.gguf", {.threads = 2, .isa = isa}, rows), want)) << name_of(isa);
    }
  }
  for (const uint64_t pinned : {uint64_t{0}, uint64_t{64} << 10}) {
    EXPECT_TRUE(same_bytes(run("typed.gguf", {.threads = 2, .most_pinned = pinned}), want)) << pinned << " pinned";
    EXPECT_TRUE(streamed_);
  }
}

INSTANTIATE_TEST_SUITE_P(, LowBit,
                         ::testing::Values(Type::IQ1_S, Type::IQ1_M, Type::IQ2_XXS, Type::IQ2_XS, Type::IQ2_S,
                                           Type::IQ3_XXS, Type::IQ3_S, Type::TQ1_0, Type::TQ2_0),
                         [](const auto& test) { return std::string(type_info(test.param).name); });

}  // namespace
}  // namespace ridge
