#include "model/closest.h"

#include <gtest/gtest.h>

#include "model/model.h"
#include "tests/format/gguf_builder.h"

namespace ridge {
namespace {

Gguf file_of(std::string_view architecture, const std::vector<std::string>& tensors = {}) {
  test::GgufBuilder gguf;
  gguf.string("general.architecture", architecture);
  for (const std::string& name : tensors) gguf.tensor({.name = name, .shape = {32, 4}, .type = Type::F32});
  return parse_gguf(gguf.build(), "test.gguf").value();
}

std::string_view closest(std::string_view name, const std::vector<std::string>& tensors = {}) {
  return closest_architecture(name, file_of(name, tensors));
}

TEST(ClosestArchitecture, SharesTheLongestBeginning) {
  EXPECT_EQ(closest("qwen35"), "qwen3");
  EXPECT_EQ(closest("qwen3vlmoe"), "qwen3moe");
  EXPECT_EQ(closest("gemma3n"), "gemma3");
  EXPECT_EQ(closest("gemma"), "gemma2");
  EXPECT_EQ(closest("deepseek"), "deepseek2");
  EXPECT_EQ(closest("llama4"), "llama");
  EXPECT_EQ(closest("granitemoe"), "granite");
}

TEST(ClosestArchitecture, KnowsFamilies) {
  EXPECT_EQ(closest("mistral3"), "llama");
  EXPECT_EQ(closest("kimi-linear"), "deepseek2");
}

TEST(ClosestArchitecture, LooksAtTensors) {
  EXPECT_EQ(closest("minicpm3", {"blk.0.attn_kv_a_mqa.weight"}), "deepseek2");
  EXPECT_EQ(closest("novel", {"blk.0.ffn_gate_inp.weight"}), "qwen3moe");
  EXPECT_EQ(closest("novel", {"blk.0.attn_norm.weight", "blk.0.ffn_gate.weight"}), "llama");
  EXPECT_EQ(closest("bert"), "");
}

TEST(ClosestArchitecture, IsNamedInTheRefusal) {
  auto model = Model::from_gguf(file_of("mistral3"));
  ASSERT_FALSE(model.ok());
  EXPECT_NE(model.error().message.find("'mistral3'"), std::string::npos) << model.error().message;
  EXPECT_NE(model.error().message.find("closest it runs is 'llama'"), std::string::npos) << model.error().message;
  EXPECT_EQ(model.error().message.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace ridge
