#include "text/prompt_weights.h"

#include <gtest/gtest.h>

#include <random>

#include "format/spiece.h"
#include "tests/format/spiece_builder.h"
#include "tests/text/tokenizer_vocabularies.h"
#include "text/image_prompt.h"

namespace ridge {
namespace {

using Texts = std::vector<WeightedText>;

void expect_parsed(std::string_view prompt, const Texts& expected) {
  const Texts parsed = parse_prompt_weights(prompt);
  ASSERT_EQ(parsed.size(), expected.size()) << prompt;
  for (size_t i = 0; i < parsed.size(); ++i) {
    EXPECT_EQ(parsed[i].text, expected[i].text) << prompt;
    EXPECT_NEAR(parsed[i].weight, expected[i].weight, 1e-6) << prompt << ": " << parsed[i].text;
  }
}

// The examples that the documentation of the grammar's first implementation gives.
TEST(PromptWeights, PublishedExamples) {
  expect_parsed("normal text", {{"normal text", 1}});
  expect_parsed("an (important) word", {{"an ", 1}, {"important", 1.1f}, {" word", 1}});
  expect_parsed("(unbalanced", {{"unbalanced", 1.1f}});
  expect_parsed("\\(literal\\]", {{"(literal]", 1}});
  expect_parsed("(unnecessary)(parens)", {{"unnecessaryparens", 1.1f}});
  expect_parsed("a (((house:1.3)) [on] a (hill:0.5), sun, (((sky))).", {{"a ", 1},
                                                                        {"house", 1.5730000000000004f},
                                                                        {" ", 1.1f},
                                                                        {"on", 1},
                                                                        {" a ", 1.1f},
                                                                        {"hill", 0.55f},
                                                                        {", sun, ", 1.1f},
                                                                        {"sky", 1.4641000000000006f},
                                                                        {".", 1.1f}});
}

TEST(PromptWeights, ExplicitWeights) {
  expect_parsed("a (red:1.2) cat", {{"a ", 1}, {"red", 1.2f}, {" cat", 1}});
  expect_parsed("(red: 1.2 )", {{"red", 1.2f}});
  expect_parsed("(red:+.5)", {{"red", 0.5f}});
  expect_parsed("(red:-1)", {{"red", -1}});
  expect_parsed("(red:0)", {{"red", 0}});
  expect_parsed("(a:b:2)", {{"a:b", 2}});
  expect_parsed("((a:2) b:3)", {{"a", 6}, {" b", 3}});
  expect_parsed("(red:2)(red:2)", {{"redred", 2}});
}

TEST(PromptWeights, WhatIsNoWeightIsText) {
  expect_parsed("", {{"", 1}});
  expect_parsed("()", {{"", 1}});
  expect_parsed("a:1.2", {{"a:1.2", 1}});
  expect_parsed("(a:x)", {{"a:x", 1.1f}});
  expect_parsed("(a:1.2.3)", {{"a:1.2.3", 1.1f}});
  expect_parsed("(a:1e3)", {{"a:1e3", 1.1f}});
  expect_parsed("(a:nan)", {{"a:nan", 1.1f}});
  expect_parsed("(a:99999)", {{"a:99999", 1.1f}});
  expect_parsed("a) b]", {{"a) b]", 1}});
  expect_parsed("a\\b \\", {{"a\\b \\", 1}});
  expect_parsed("a\\\\(b)", {{"a\\", 1}, {"b", 1.1f}});
}

TEST(PromptWeights, SquareBracketsWeaken) {
  expect_parsed("a [b] [[c]]", {{"a ", 1}, {"b", 1 / 1.1f}, {" ", 1}, {"c", 1 / 1.21f}});
  expect_parsed("[(a)]", {{"a", 1}});
  expect_parsed("(a [b) c]", {{"a ", 1.1f}, {"b", 1}, {" c", 1 / 1.1f}});  // brackets that cross
}

TEST(PromptWeights, AnyTextIsAPrompt) {
  std::mt19937 random(3);
  constexpr std::string_view signs = "()[]\\:1.2 ab-";
  for (int i = 0; i < 20'000; ++i) {
    std::string prompt;
    for (size_t n = random() % 40; n > 0; --n) prompt += signs[random() % signs.size()];
    const Texts texts = parse_prompt_weights(prompt);
    ASSERT_FALSE(texts.empty());
    for (size_t k = 0; k < texts.size(); ++k) {
      ASSERT_LE(std::abs(texts[k].weight), 1000) << prompt;
      ASSERT_TRUE(!texts[k].text.empty() || texts.size() == 1) << prompt;
      ASSERT_TRUE(k == 0 || texts[k].weight != texts[k - 1].weight) << prompt;
    }
  }
}

// Quadratic time would take hours here.
TEST(PromptWeights, DeepNestingIsLinear) {
  std::string prompt;
  for (int i = 0; i < 500'000; ++i) prompt += "(a";
  const Texts texts = parse_prompt_weights(prompt);
  EXPECT_LE(texts.size(), 300u);
  EXPECT_LE(texts.back().weight, 1000);
}

std::unique_ptr<Tokenizer> small_t5() {
  return Tokenizer::from_metadata(
             *std::make_unique<Metadata>(parse_spiece(test::small_spiece().build(), "spiece.model").value()))
      .value();
}

std::unique_ptr<Tokenizer> small_qwen() {
  SmallVocabulary v = small_bpe_vocabulary();
  v.add("<|endoftext|>", TokenKind::control);
  Metadata metadata;
  put_vocabulary(metadata, v);
  metadata.entries()["tokenizer.ggml.model"] = std::string("gpt2");
  metadata.entries()["tokenizer.ggml.pre"] = std::string("qwen2");
  metadata.entries()["tokenizer.ggml.merges"] = MetadataArray(pool_of(v.merges));
  return Tokenizer::from_metadata(metadata).value();
}

TEST(ImagePrompt, WeightsGoWithT5sTokens) {
  const auto qwen = small_qwen(), t5 = small_t5();
  const ImagePrompt p = encode_image_prompt(*qwen, *t5, "a (ab:1.5)").value();
  EXPECT_EQ(p.t5, (std::vector<TokenId>{4, 8, 1}));
  EXPECT_EQ(p.t5_weights, (std::vector<float>{1, 1.5f, 1}));
  const ImagePrompt plain = encode_image_prompt(*qwen, *t5, "a ").value();
  EXPECT_EQ(plain.qwen.size() + 2, p.qwen.size());  // "ab" apart, without its brackets
}

TEST(ImagePrompt, EmptyAndLongPrompts) {
  const auto qwen = small_qwen(), t5 = small_t5();
  for (const char* prompt : {"", "()"}) {
    const ImagePrompt p = encode_image_prompt(*qwen, *t5, prompt).value();
    EXPECT_EQ(p.qwen, (std::vector<TokenId>{*qwen->find("<|endoftext|>")})) << prompt;
    EXPECT_EQ(p.t5, (std::vector<TokenId>{1})) << prompt;
    EXPECT_EQ(p.t5_weights, (std::vector<float>{1})) << prompt;
  }
  std::string words;
  for (int i = 0; i < 600; ++i) words += " b";
  const ImagePrompt p = encode_image_prompt(*qwen, *t5, words).value();
  EXPECT_EQ(p.qwen.size(), 512u);
  EXPECT_GT(p.qwen_cut, 0u);
  EXPECT_EQ(p.t5.size(), 512u);
  EXPECT_EQ(p.t5.back(), 1);
  EXPECT_EQ(p.t5_weights.size(), 512u);
  EXPECT_EQ(p.t5_cut, 600u * 2 - 511);
}

TEST(ImagePrompt, RefusesOtherVocabularies) {
  const auto qwen = small_qwen(), t5 = small_t5();
  EXPECT_FALSE(encode_image_prompt(*t5, *t5, "a").ok());
  EXPECT_FALSE(encode_image_prompt(*qwen, *small_qwen(), "a").ok());
}

}  // namespace
}  // namespace ridge
