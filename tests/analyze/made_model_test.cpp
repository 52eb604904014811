#include "analyze/made_model.h"

#include <gtest/gtest.h>

#include <cstring>

#include "analyze/sweep_models.h"
#include "format/gguf.h"
#include "tensor/quantize.h"
#include "tests/temp_folder.h"

namespace ridge {
namespace {

ModelShape small(Type type) {
  ModelShape s{.name = "small", .layers = 2, .width = 64, .ffn = 96, .vocabulary = 48, .heads = 4};
  s.kv_heads = 2;
  s.head_dim = 16;
  s.type = s.head_type = type;
  return s;
}

MadeModel make(const ModelShape& shape, const std::string& folder) {
  auto made = random_model(shape, {.name = shape.name, .folder = folder});
  EXPECT_TRUE(made.ok()) << made.error().message;
  return std::move(made).value();
}

std::string bytes_of(const Gguf& file, const std::string& tensor) {
  const GgufTensor* t = file.find(tensor);
  if (t == nullptr) return "";
  const std::vector<uint8_t> bytes = test::read_file(file.files()[0].path);
  return {bytes.begin() + static_cast<ptrdiff_t>(t->offset),
          bytes.begin() + static_cast<ptrdiff_t>(t->offset + t->bytes)};
}

TEST(MadeModel, ARandomModelIsOneThatRuns) {
  const test::TempFolder folder;
  for (bool latent : {false, true}) {
    ModelShape shape = small(Type::Q8_0);
    if (latent) {
      shape.latent = 32;
      shape.nope = shape.value = 32;
      shape.rope = 16;
      shape.kv_heads = shape.heads;
    }
    const MadeModel made = make(shape, folder.path());
    auto model = Model::open(made.path());
    ASSERT_TRUE(model.ok()) << model.error().message;
    const auto counted = make_shape_model(shape).value();
    const PassShape pass{.tokens = 3, .outputs = 1};
    const Cost runs = model.value()->program(pass, {}).cost(), counts = counted->program(pass, {}).cost();
    EXPECT_EQ(runs.int_ops, counts.int_ops);
    EXPECT_EQ(runs.memory_bytes, counts.memory_bytes);
    EXPECT_EQ(runs.kv_bytes, counts.kv_bytes);
    EXPECT_EQ(model.value()->config().architecture, latent ? "deepseek2" : "llama");
  }
  EXPECT_EQ(folder.entries(), 0u);  // files without a name
}

TEST(MadeModel, LayersAreLeftOutAndRepeated) {
  const test::TempFolder folder;
  const MadeModel base = make(small(Type::F32), folder.path());
  const Gguf before = Gguf::open(base.path()).value();
  for (uint32_t layers : {1u, 5u}) {
    auto made = change_model(base.path(), {.layers = layers}, {.name = "changed", .folder = folder.path()});
    ASSERT_TRUE(made.ok()) << made.error().message;
    auto model = Model::open(made.value().path());
    ASSERT_TRUE(model.ok()) << model.error().message;
    EXPECT_EQ(model.value()->config().layers, layers);
    EXPECT_EQ(model.value()->config().name, "changed");
    const Gguf& after = model.value()->file();
    EXPECT_EQ(after.tensors().size(), 2 + layers * (before.tensors().size() - 2) / 2);
    for (uint32_t il = 0; il < layers; ++il) {
      const std::string suffix = ".attn_k.weight";
      EXPECT_EQ(bytes_of(after, "blk." + std::to_string(il) + suffix),
                bytes_of(before, "blk." + std::to_string(il % 2) + suffix));
    }
    EXPECT_EQ(bytes_of(after, "token_embd.weight"), bytes_of(before, "token_embd.weight"));
  }
}

TEST(MadeModel, WeightsAreTheSameInAnotherType) {
  const test::TempFolder folder;
  const MadeModel base = make(small(Type::F32), folder.path());
  const Gguf before = Gguf::open(base.path()).value();
  auto made = change_model(base.path(), {.type = Type::Q8_0}, {.name = "changed", .folder = folder.path()});
  ASSERT_TRUE(made.ok()) << made.error().message;
  const Gguf after = Gguf::open(made.value().path()).value();
  EXPECT_EQ(after.find("blk.1.ffn_down.weight")->type, Type::Q8_0);
  EXPECT_EQ(after.find("blk.1.ffn_norm.weight")->type, Type::F32);
  const std::string floats = bytes_of(before, "blk.1.ffn_down.weight");
  std::string blocks(row_bytes(Type::Q8_0, 96) * 64, '\0');
  for (size_t row = 0; row < 64; ++row) {
    std::vector<float> values(96);
    std::memcpy(values.data(), floats.data() + row * 96 * sizeof(float), 96 * sizeof(float));
    quantize_row(Type::Q8_0, values.data(), 96,
                 reinterpret_cast<uint8_t*>(blocks.data()) + row * row_bytes(Type::Q8_0, 96));
  }
  EXPECT_EQ(bytes_of(after, "blk.1.ffn_down.weight"), blocks);
}

TEST(SweepModels, AttentionOfAFileTakesItsSizes) {
  const test::TempFolder folder;
  const MadeModel base = make(small(Type::Q4_0), folder.path());
  auto models = sweep_models(Sweep::attention, base.path());
  ASSERT_TRUE(models.ok()) << models.error().message;
  ASSERT_EQ(models.value().size(), 3u);
  EXPECT_EQ(models.value()[2].name, "small as MLA");
  const ModelShape shape = shape_of(*Model::open(base.path()).value()).value();
  EXPECT_EQ(shape.ffn, 96u);
  EXPECT_EQ(shape.kv_heads, 2u);
  EXPECT_EQ(shape.type, Type::Q4_0);
}

// Ctrl-C while a model is being made: an error that says so, and no part of a file.
TEST(MadeModel, StopsWhenInterrupted) {
  const test::TempFolder folder;
  const MadeModel base = make(small(Type::F16), folder.path());
  const std::atomic<bool> stop{true};
  const MadeOptions options{.name = "stopped", .folder = folder.path(), .interrupted = &stop};
  for (const auto& made :
       {random_model(small(Type::F16), options), change_model(base.path(), {.layers = 1}, options)}) {
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.error().code, ErrorCode::io);
    EXPECT_NE(made.error().message.find("Ctrl-C"), std::string::npos) << made.error().message;
  }
  EXPECT_EQ(folder.entries(), 0u);
}

}  // namespace
}  // namespace ridge
