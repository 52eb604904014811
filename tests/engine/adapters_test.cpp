// Adapters of language models: what they add is right, the same bytes in every mode, counted, and refused where they do
// not belong.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <string>

#include "base/units.h"
#include "format/ridge_pack.h"
#include "tensor/half.h"
#include "tensor/quantize.h"
#include "tests/format/gguf_builder.h"
#include "tests/golden.h"
#include "tests/temp_folder.h"

namespace ridge {
namespace {

using AdapterLogits = std::vector<std::vector<float>>;

constexpr uint64_t kAdaptedWidth = 64, kAdaptedFfn = 96, kAdaptedWords = 80, kAdaptedLayers = 2;

struct AdaptedShape {
  std::string name;
  uint64_t rows, cols;
};

std::vector<AdaptedShape> adapted_shapes() {
  std::vector<AdaptedShape> out;
  for (uint64_t i = 0; i < kAdaptedLayers; ++i) {
    const std::string b = "blk." + std::to_string(i) + ".";
    out.push_back({b + "attn_q.weight", kAdaptedWidth, kAdaptedWidth});
    out.push_back({b + "attn_k.weight", kAdaptedWidth / 2, kAdaptedWidth});
    out.push_back({b + "attn_v.weight", kAdaptedWidth / 2, kAdaptedWidth});
    out.push_back({b + "attn_output.weight", kAdaptedWidth, kAdaptedWidth});
    out.push_back({b + "ffn_gate.weight", kAdaptedFfn, kAdaptedWidth});
    out.push_back({b + "ffn_up.weight", kAdaptedFfn, kAdaptedWidth});
    out.push_back({b + "ffn_down.weight", kAdaptedWidth, kAdaptedFfn});
  }
  out.push_back({"output.weight", kAdaptedWords, kAdaptedWidth});
  return out;
}

using Values = std::map<std::string, std::vector<float>>;

std::vector<float> adapted_values(std::mt19937_64& rng, uint64_t count, float deviation) {
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> out(count);
  for (float& v : out) v = normal(rng);
  return out;
}

Values adapted_weights() {
  std::mt19937_64 rng(7);
  Values out;
  out["token_embd.weight"] = adapted_values(rng, kAdaptedWords * kAdaptedWidth, 1);
  for (const AdaptedShape& s : adapted_shapes()) {
    out[s.name] = adapted_values(rng, s.rows * s.cols, 1 / std::sqrt(static_cast<float>(s.cols)));
  }
  return out;
}

test::Bytes as_type(Type type, const std::vector<float>& values, uint64_t cols) {
  const size_t rows = values.size() / cols, stride = row_bytes(type, cols);
  test::Bytes bytes(rows * stride);
  for (size_t r = 0; r < rows; ++r) {
    const float* row = values.data() + r * cols;
    if (type == Type::Q8_0) quantize_row(type, row, cols, bytes.data() + r * stride);
    if (type == Type::F32) std::memcpy(bytes.data() + r * stride, row, stride);
    for (size_t i = 0; type == Type::F16 && i < cols; ++i) {
      const uint16_t half = f32_to_f16(row[i]);
      std::memcpy(bytes.data() + r * stride + 2 * i, &half, 2);
    }
  }
  return bytes;
}

test::Bytes adapted_model(Type type, const Values& weights) {
  test::GgufBuilder gguf;
  gguf.string("general.architecture", "llama").number<uint32_t>("llama.block_count", kAdaptedLayers);
  gguf.number<uint32_t>("llama.context_length", 64).number<uint32_t>("llama.embedding_length", kAdaptedWidth);
  gguf.number<uint32_t>("llama.feed_forward_length", kAdaptedFfn).number<uint32_t>("llama.attention.head_count", 4);
  gguf.number<uint32_t>("llama.attention.head_count_kv", 2);
  const auto add = [&](const std::string& name, uint64_t rows, uint64_t cols) {
    gguf.tensor({.name = name, .shape = {cols, rows}, .type = type, .data = as_type(type, weights.at(name), cols)});
  };
  const auto ones = [&](const std::string& name) {
    const std::vector<float> one(kAdaptedWidth, 1.0f);
    gguf.tensor({.name = name, .shape = {kAdaptedWidth}, .data = as_type(Type::F32, one, kAdaptedWidth)});
  };
  add("token_embd.weight", kAdaptedWords, kAdaptedWidth);
  for (const AdaptedShape& s : adapted_shapes()) add(s.name, s.rows, s.cols);
  for (uint64_t i = 0; i < kAdaptedLayers; ++i) {
    ones("blk." + std::to_string(i) + ".attn_norm.weight");
    ones("blk." + std::to_string(i) + ".ffn_norm.weight");
  }
  ones("output_norm.weight");
  return gguf.build();
}

// What an adapter file says, right or wrong.
struct AdapterFile {
  std::string general = "adapter", architecture = "llama", kind = "lora";
  float alpha = 6;
  uint64_t rank = 3;
  Type type = Type::F32;
  uint64_t seed = 1;
  std::vector<std::string> left_out = {};  // tensors
  std::string renamed = {}, to = {};       // one of them under another name
  std::string damaged = {};                // whose first value is no number
};

Values adapter_values(const AdapterFile& a) {
  std::mt19937_64 rng(a.seed);
  Values out;
  for (const AdaptedShape& s : adapted_shapes()) {
    out[s.name + ".lora_a"] = adapted_values(rng, a.rank * s.cols, 1 / std::sqrt(static_cast<float>(s.cols)));
    out[s.name + ".lora_b"] = adapted_values(rng, a.rank * s.rows, 0.1f);
  }
  if (!a.damaged.empty()) out.at(a.damaged)[0] = NAN;
  return out;
}

test::Bytes adapter_file(const AdapterFile& a) {
  test::GgufBuilder gguf;
  gguf.string("general.type", a.general).string("general.architecture", a.architecture);
  gguf.string("adapter.type", a.kind).number<float>("adapter.lora.alpha", a.alpha);
  const Values values = adapter_values(a);
  const auto add = [&](std::string name, uint64_t rows, uint64_t cols) {
    if (std::find(a.left_out.begin(), a.left_out.end(), name) != a.left_out.end()) return;
    test::Bytes bytes = as_type(a.type, values.at(name), cols);
    if (name == a.renamed) name = a.to;
    gguf.tensor({.name = name, .shape = {cols, rows}, .type = a.type, .data = std::move(bytes)});
  };
  for (const AdaptedShape& s : adapted_shapes()) {
    add(s.name + ".lora_a", a.rank, s.cols);
    add(s.name + ".lora_b", s.rows, a.rank);
  }
  return gguf.build();
}

// W + scale · B A, in double.
Values merged_weights(Values weights, const AdapterFile& a, double strength) {
  const Values values = adapter_values(a);
  const double scale = strength * double{a.alpha} / static_cast<double>(a.rank);
  for (const AdaptedShape& s : adapted_shapes()) {
    const std::vector<float>&down = values.at(s.name + ".lora_a"), &up = values.at(s.name + ".lora_b");
    for (uint64_t r = 0; r < s.rows; ++r) {
      for (uint64_t c = 0; c < s.cols; ++c) {
        double sum = 0;
        for (uint64_t k = 0; k < a.rank; ++k) sum += double{up[r * a.rank + k]} * double{down[k * s.cols + c]};
        float& w = weights.at(s.name)[r * s.cols + c];
        w = static_cast<float>(double{w} + scale * sum);
      }
    }
  }
  return weights;
}

class Adapters : public testing::Test {
 protected:
  void write(const std::string& name, const test::Bytes& bytes) { test::write_file(folder_ / name, bytes); }

  Result<std::unique_ptr<Engine>> open(const std::string& model, std::vector<LoraFile> loras,
                                       EngineOptions options = {}) {
    options.path = folder_ / model;
    for (LoraFile& lora : loras) lora.path = folder_ / lora.path;
    options.adapters = std::move(loras);
    options.default_context = 32;
    options.need_tokenizer = false;
    return Engine::open(options);
  }

  AdapterLogits run(const std::string& model, const std::vector<LoraFile>& loras, EngineOptions options = {},
                    uint32_t rows = 8) {
    options.logits_rows = rows;
    auto engine = open(model, loras, options);
    EXPECT_TRUE(engine.ok()) << engine.error().message;
    if (!engine.ok()) return {};
    streamed_ = engine.value()->plan().placement.streams();
    return golden::all_logits(*engine.value(), ids_);
  }

  static double distance(const AdapterLogits& a, const AdapterLogits& b) {
    if (a.empty() || a.size() != b.size()) return INFINITY;
    double most = 0;
    for (size_t t = 0; t < a.size(); ++t) {
      for (size_t i = 0; i < a[t].size(); ++i) most = std::max(most, std::abs(double{a[t][i]} - double{b[t][i]}));
    }
    return most;
  }

  void expect_refused(const AdapterFile& a, const std::string& part, ErrorCode code = ErrorCode::bad_input) {
    write("wrong.gguf", adapter_file(a));
    expect_error("wrong.gguf", 1, part, code);
  }
  void expect_error(const std::string& file, double strength, const std::string& part,
                    ErrorCode code = ErrorCode::bad_input) {
    auto engine = open("f32.gguf", {{.path = file, .strength = strength}});
    ASSERT_FALSE(engine.ok()) << part;
    EXPECT_EQ(engine.error().code, code);
    EXPECT_NE(engine.error().message.find(part), std::string::npos) << engine.error().message;
    EXPECT_EQ(engine.error().message.find('\n'), std::string::npos) << engine.error().message;
  }

  void SetUp() override { write("f32.gguf", adapted_model(Type::F32, weights_)); }

  test::TempFolder folder_;
  const Values weights_ = adapted_weights();
  const std::vector<TokenId> ids_ = {1, 17, 30, 5, 9, 75, 33, 2, 2, 71, 79, 0, 45};
  bool streamed_ = false;
};

TEST_F(Adapters, AreTheMergedWeights) {
  const AdapterFile one, other{.alpha = 2, .rank = 5, .seed = 9};
  write("one.gguf", adapter_file(one));
  write("other.gguf", adapter_file(other));
  write("merged.gguf", adapted_model(Type::F32, merged_weights(weights_, one, 0.5)));
  write("both.gguf", adapted_model(Type::F32, merged_weights(merged_weights(weights_, one, 0.5), other, -1)));
  const EngineOptions exact{.threads = 2, .numerics = Numerics::exact};
  const AdapterLogits plain = run("f32.gguf", {}, exact), merged = run("merged.gguf", {}, exact);
  EXPECT_GT(distance(plain, merged), 0.1);
  EXPECT_LT(distance(run("f32.gguf", {{.path = "one.gguf", .strength = 0.5}}, exact), merged), 1e-5);
  const std::vector<LoraFile> two = {{.path = "one.gguf", .strength = 0.5}, {.path = "other.gguf", .strength = -1}};
  EXPECT_LT(distance(run("f32.gguf", two, exact), run("both.gguf", {}, exact)), 1e-5);
  EXPECT_EQ(distance(run("f32.gguf", {{.path = "one.gguf", .strength = 0}}, exact), plain), 0);
}

TEST_F(Adapters, MayBeOfOtherTypes) {
  write("f32-adapter.gguf", adapter_file({}));
  write("f16-adapter.gguf", adapter_file({.type = Type::F16}));
  const AdapterLogits want = run("f32.gguf", {{.path = "f32-adapter.gguf"}});
  const double far = distance(run("f32.gguf", {{.path = "f16-adapter.gguf"}}), want);
  EXPECT_GT(far, 0);
  EXPECT_LT(far, 0.01);
  // An alpha of 0 is none: the strength alone.
  write("rank.gguf", adapter_file({.alpha = 3, .rank = 3}));
  write("none.gguf", adapter_file({.alpha = 0, .rank = 3}));
  EXPECT_EQ(distance(run("f32.gguf", {{.path = "none.gguf"}}), run("f32.gguf", {{.path = "rank.gguf"}})), 0);
}

TEST_F(Adapters, SameBytesInEveryMode) {
  write("q8.gguf", adapted_model(Type::Q8_0, weights_));
  write("one.gguf", adapter_file({}));
  write("wide.gguf", adapter_file({.rank = 21, .seed = 4}));
  ThreadPool pool({.threads = 2});
  const auto packed = write_ridge_pack(Gguf::open(folder_ / "q8.gguf").value(), folder_ / "q8.ridge", {.pool = &pool});
  ASSERT_TRUE(packed.ok()) << packed.error().message;
  const std::vector<LoraFile> loras = {{.path = "one.gguf", .strength = 0.5}, {.path = "wide.gguf"}};
  const AdapterLogits want = run("q8.gguf", loras, {.threads = 1, .isa = Isa::scalar}, 1);
  EXPECT_GT(distance(want, run("q8.gguf", {})), 0.1);
  struct Mode {
    int threads;
    uint32_t rows;
  };
  for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512, Isa::neon}) {
    if (!choose_kernels({.isa = isa}).ok()) continue;
    for (const Mode mode : {Mode{1, 16}, Mode{2, 4}, Mode{3, 1}}) {
      EXPECT_EQ(distance(run("q8.gguf", loras, {.threads = mode.threads, .isa = isa}, mode.rows), want), 0)
          << name_of(isa) << ", " << mode.threads << " threads, " << mode.rows << " rows";
    }
  }
  EXPECT_EQ(distance(run("q8.ridge", loras, {.threads = 2}, 4), want), 0);
  for (const char* model : {"q8.gguf", "q8.ridge"}) {
    EXPECT_EQ(distance(run(model, loras, {.threads = 2, .most_pinned = 20 * kKiB}, 4), want), 0) << model;
    EXPECT_TRUE(streamed_);
    EXPECT_EQ(distance(run(model, loras, {.threads = 2, .most_pinned = 0}, 16), want), 0) << model;
  }
}

// A token at a time, as generate() does it, gives what a prompt gives.
TEST_F(Adapters, WhenGenerating) {
  write("one.gguf", adapter_file({}));
  const AdapterLogits want = run("f32.gguf", {{.path = "one.gguf"}});
  auto engine = open("f32.gguf", {{.path = "one.gguf"}});
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  for (size_t t = 0; t < ids_.size(); ++t) {
    const auto logits = engine.value()->decode(ids_[t]);
    ASSERT_TRUE(logits.ok()) << logits.error().message;
    EXPECT_EQ(std::memcmp(logits.value().data(), want[t].data(), want[t].size() * sizeof(float)), 0) << t;
  }
}

TEST_F(Adapters, AreInTheAccountAndThePlan) {
  write("one.gguf", adapter_file({.rank = 8}));
  const auto with = open("f32.gguf", {{.path = "one.gguf"}}), without = open("f32.gguf", {});
  ASSERT_TRUE(with.ok() && without.ok());
  const auto& items = with.value()->plan().account.items();
  const auto item = std::find_if(items.begin(), items.end(), [](const AccountItem& i) { return i.name == "adapters"; });
  ASSERT_NE(item, items.end());
  uint64_t least = 0;  // rows in panels of 16
  for (const AdaptedShape& s : adapted_shapes()) least += sizeof(float) * (16 * s.cols + 8 * s.rows);
  EXPECT_GE(item->bytes, least);
  EXPECT_EQ(item->bytes, with.value()->model().adapters().bytes());
  const Cost more = with.value()->plan().program.other, plain = without.value()->plan().program.other;
  EXPECT_GE(more.memory_bytes, plain.memory_bytes + least);
  EXPECT_GT(more.flops, plain.flops);
  EXPECT_EQ(more.storage_bytes, plain.storage_bytes);
}

TEST_F(Adapters, BelongToAState) {
  write("one.gguf", adapter_file({}));
  EngineOptions options;
  options.states = true;
  {
    auto engine = open("f32.gguf", {{.path = "one.gguf"}}, options);
    ASSERT_TRUE(engine.ok() && engine.value()->evaluate(ids_).ok());
    ASSERT_TRUE(engine.value()->save_state(folder_ / "state").ok());
    EXPECT_TRUE(engine.value()->load_state(folder_ / "state").ok());
  }
  for (const std::vector<LoraFile>& loras :
       {std::vector<LoraFile>{}, std::vector<LoraFile>{{.path = "one.gguf", .strength = 0.5}}}) {
    auto engine = open("f32.gguf", loras, options);
    ASSERT_TRUE(engine.ok());
    EXPECT_FALSE(engine.value()->load_state(folder_ / "state").ok());
  }
}

TEST_F(Adapters, AreRefusedByName) {
  expect_refused({.general = "model"}, "is no adapter");
  expect_refused({.architecture = "qwen2"},
                 "an adapter for models of the architecture 'qwen2', and this model is 'llama'");
  expect_refused({.kind = "ia3"}, "type 'ia3'");
  expect_refused({.alpha = INFINITY}, "no 32-bit float");
  expect_refused({.left_out = {"blk.1.ffn_up.weight.lora_b"}}, "for 'blk.1.ffn_up.weight' it has .lora_a alone");
  expect_refused({.renamed = "blk.1.ffn_up.weight.lora_b", .to = "blk.7.ffn_up.weight.lora_b"},
                 "'blk.7.ffn_up.weight.lora_b' is for a matrix that the model does not have");
  expect_refused({.renamed = "blk.1.ffn_up.weight.lora_b", .to = "blk.1.ffn_up.weight"}, "end in .lora_a or .lora_b");
  expect_refused(
      {.left_out = {"output.weight.lora_b"}, .renamed = "output.weight.lora_a", .to = "token_embd.weight.lora_a"},
      "'token_embd.weight.lora_a' is for a matrix that is no plain product");
  expect_refused(
      {.left_out = {"output.weight.lora_b"}, .renamed = "output.weight.lora_a", .to = "output_norm.weight.lora_a"},
      "no plain product");
  // A of q (64 columns) where the one of ffn_down (96) belongs.
  expect_refused({.left_out = {"blk.0.ffn_down.weight.lora_a", "blk.0.attn_q.weight.lora_b"},
                  .renamed = "blk.0.attn_q.weight.lora_a",
                  .to = "blk.0.ffn_down.weight.lora_a"},
                 "the shapes [64, 3] and [3, 64], expected [96, rank] and [rank, 64]");
  expect_refused({.damaged = "blk.0.attn_k.weight.lora_b"}, "no finite numbers");
  write("one.gguf", adapter_file({}));
  expect_error("one.gguf", NAN, "no 32-bit float");
  expect_error("f32.gguf", 1, "is no adapter");
  expect_error("absent.gguf", 1, "absent.gguf");
  auto engine = open("one.gguf", {});
  ASSERT_FALSE(engine.ok());
  EXPECT_NE(engine.error().message.find("--lora"), std::string::npos) << engine.error().message;
}

TEST_F(Adapters, CutShort) {
  const test::Bytes whole = adapter_file({});
  for (size_t bytes = 0; bytes < whole.size(); bytes += whole.size() / 37) {
    write("cut.gguf", test::Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes)));
    expect_error("cut.gguf", 1, "cut.gguf");
  }
}

}  // namespace
}  // namespace ridge
