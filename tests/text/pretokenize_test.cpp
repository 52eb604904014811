#include "text/pretokenize.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "tests/text/valid_utf8.h"

namespace ridge {
namespace {

std::vector<std::string> words(std::string_view name, std::string_view text) {
  const Pretokenizer* rules = find_pretokenizer(name);
  if (rules == nullptr) return {"unknown pre-tokenizer"};
  std::vector<std::string> out;
  rules->split(text, [&](std::string_view word) { out.emplace_back(word); });
  return out;
}

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  std::string all = pretokenizer_names() + ", ";
  for (size_t begin = 0, end; (end = all.find(", ", begin)) != all.npos; begin = end + 2) {
    names.push_back(all.substr(begin, end - begin));
  }
  return names;
}

using Words = std::vector<std::string>;

TEST(Pretokenize, Gpt2) {
  EXPECT_EQ(words("gpt-2", "I'm we'RE  a1 !?"), (Words{"I", "'m", " we", "'", "RE", " ", " a", "1", " !?"}));
  EXPECT_EQ(words("gpt-2", "x   "), (Words{"x", "   "}));
  EXPECT_EQ(words("gpt-2", "x\n\n y"), (Words{"x", "\n\n", " y"}));
  EXPECT_EQ(words("gpt-2", "\t\tx"), (Words{"\t", "\t", "x"}));
  EXPECT_EQ(words("gpt-2", "2024 12"), (Words{"2024", " 12"}));
}

TEST(Pretokenize, SmollmTakesDigitsOutFirst) {
  EXPECT_EQ(words("smollm", "a 12"), (Words{"a", " ", "1", "2"}));
  // The piece before the digit ends with white space: look-ahead sees the end of the piece, not the digit.
  EXPECT_EQ(words("smollm", "a  1"), (Words{"a", "  ", "1"}));
  EXPECT_EQ(words("gpt-2", "a  1"), (Words{"a", " ", " 1"}));
}

TEST(Pretokenize, Llama3) {
  EXPECT_EQ(words("llama-bpe", "We'LL 1234\n\n x"), (Words{"We", "'LL", " ", "123", "4", "\n\n", " x"}));
  EXPECT_EQ(words("llama-bpe", "(foo) \n !\r\n"), (Words{"(foo", ")", " \n", " !\r\n"}));
  EXPECT_EQ(words("llama-bpe", "\tx"), (Words{"\tx"}));
}

TEST(Pretokenize, Qwen2TakesDigitsOneByOne) {
  EXPECT_EQ(words("qwen2", "x 12"), (Words{"x", " ", "1", "2"}));
  EXPECT_EQ(words("deepseek-r1-qwen", "x 12"), words("qwen2", "x 12"));
}

TEST(Pretokenize, Default) {
  EXPECT_EQ(words("default", "a, b 1234$x`"), (Words{"a", ",", " b", " ", "123", "4", "$", "x", "`"}));
}

TEST(Pretokenize, DeepseekLlm) {
  EXPECT_EQ(words("deepseek-llm", "Hi there!\nx  "), (Words{"Hi", " there", "!", "\n", "x", "  "}));
  EXPECT_EQ(words("deepseek-llm", "你好 한국 12"), (Words{"你好", " ", "한국", " ", "12"}));
  EXPECT_EQ(words("deepseek-llm", "。\u3000。\u3000x"), (Words{"。\u3000。", "\u3000", "x"}));
  EXPECT_EQ(words("deepseek-llm", "\u3000\u3000"), (Words{"\u3000\u3000"}));
}

TEST(Pretokenize, DeepseekV3) {
  EXPECT_EQ(words("deepseek-v3", "I'm (ok) 12345$x  y\n\n z"),
            (Words{"I", "'m", " (", "ok", ")", " ", "123", "45", "$x", " ", " y", "\n\n", " z"}));
  EXPECT_EQ(words("deepseek-v3", "日本語 and かな,テスト"), (Words{"日本語", " and", " ", "かな", ",", "テスト"}));
  EXPECT_EQ(words("deepseek-v3", "a\u0301b \u0301c"), (Words{"a\u0301b", " \u0301c"}));
  EXPECT_EQ(words("deepseek-v3", "x  \n\t!?\r\n{}"), (Words{"x", "  \n", "\t", "!?\r\n", "{}"}));
  EXPECT_EQ(words("deepseek-v3", "na\u00efve_case\u2026no"), (Words{"na\u00efve", "_case", "\u2026", "no"}));
}

TEST(Pretokenize, O200kSplitsByCaseAndKeepsContractions) {
  EXPECT_EQ(words("gpt-4o", "camelCase HTMLDoc don't a/\n"),
            (Words{"camel", "Case", " HTMLDoc", " don't", " a", "/\n"}));
  EXPECT_EQ(words("gpt-4o", "ABC ABc你D"), (Words{"ABC", " ABc你", "D"}));
  EXPECT_EQ(words("gpt-4o", "A你B"), (Words{"A你", "B"}));  // the caseless letter is given back: U* A, W+ 你
  EXPECT_EQ(words("tekken", "don't 12"), (Words{"don", "'t", " ", "1", "2"}));
}

TEST(Pretokenize, EveryNameIsFoundAndOthersAreNot) {
  ASSERT_GT(all_names().size(), 30u);
  for (const std::string& name : all_names()) EXPECT_NE(find_pretokenizer(name), nullptr) << name;
  EXPECT_EQ(find_pretokenizer("no-such"), nullptr);
  EXPECT_EQ(find_pretokenizer(""), nullptr);
}

// Whatever the text, the words together are the text, none is empty, and none begins inside a character.
TEST(Pretokenize, WordsArePartsOfTheText) {
  std::mt19937 random(7);
  const std::vector<std::string> parts = {" ",      "  ",     "\n",   "\r\n",     "\t", "'",     "s", "LL",
                                          "a",      "É",      "你",   "1",        "½",  ".",     "$", "/",
                                          "\u3000", "\u0301", "\xFF", "\xE2\x96", "😀",  "\u10D0"};
  for (const std::string& name : all_names()) {
    for (int round = 0; round < 200; ++round) {
      std::string text;
      for (size_t n = random() % 30; n > 0; --n) text += parts[random() % parts.size()];
      std::string joined;
      for (const std::string& word : words(name, text)) {
        ASSERT_FALSE(word.empty()) << name;
        joined += word;
        ASSERT_TRUE(is_valid_utf8(word) || !is_valid_utf8(text)) << name;
      }
      ASSERT_EQ(joined, text) << name;
    }
  }
}

// Long runs of one character: a matcher that looks ahead again at every position would take minutes.
TEST(Pretokenize, LongRunsAreLinear) {
  for (const char* name : {"default", "gpt-2", "smollm", "llama-bpe", "qwen2", "gpt-4o", "tekken", "deepseek-llm"}) {
    for (const char* unit : {" ", "\n", "a", "1", "!", "'", "\u3000", "\xFF"}) {
      std::string text;
      while (text.size() < 200000) text += unit;
      size_t bytes = 0;
      find_pretokenizer(name)->split(text + "x", [&](std::string_view word) { bytes += word.size(); });
      EXPECT_EQ(bytes, text.size() + 1) << name;
    }
  }
}

}  // namespace
}  // namespace ridge
