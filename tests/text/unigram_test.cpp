// SentencePiece unigram against ids made by sentencepiece, and its rules one by one.
#include "text/unigram.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "format/spiece.h"
#include "tests/format/spiece_builder.h"
#include "text/tokenizer_file.h"

namespace ridge {
namespace {

using nlohmann::json;
using test::small_spiece;
using test::SpieceBuilder;

std::string golden_folder() { return std::string(RIDGE_SHARED_DIR) + "/golden/unigram"; }

std::unique_ptr<Tokenizer> open_unigram(const std::string& path) {
  auto tokenizer = open_tokenizer_file(path);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  return tokenizer.ok() ? std::move(tokenizer).value() : nullptr;
}

std::unique_ptr<Tokenizer> built(const SpieceBuilder& model) {
  Result<Metadata> metadata = parse_spiece(model.build(), "spiece.model");
  EXPECT_TRUE(metadata.ok()) << metadata.error().message;
  auto tokenizer = Tokenizer::from_metadata(metadata.value());
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  return std::move(tokenizer).value();
}

std::vector<TokenId> plain(const Tokenizer& t, std::string_view text) { return t.encode(text, {.add_special = false}); }

void expect_golden_ids(const std::string& folder) {
  const auto tokenizer = open_unigram(folder + "/spiece.model");
  ASSERT_NE(tokenizer, nullptr);
  const json golden = json::parse(std::ifstream(folder + "/tokens.json"));
  ASSERT_GT(golden.at("strings").size(), 100u);
  for (size_t i = 0; i < golden.at("strings").size(); ++i) {
    const auto text = golden.at("strings")[i].get<std::string>();
    EXPECT_EQ(plain(*tokenizer, text), golden.at("ids")[i].get<std::vector<TokenId>>()) << i << ": " << text;
  }
}

TEST(Unigram, GoldenIds) {
  if (!std::filesystem::exists(golden_folder())) GTEST_SKIP() << "needs ../shared/golden/unigram";
  expect_golden_ids(golden_folder());
}

TEST(Unigram, GoldenIdsOfPiecesThatTie) { expect_golden_ids(std::string(RIDGE_TEST_DATA) + "/unigram-ties"); }

TEST(Unigram, GoldenNormalisedForms) {
  if (!std::filesystem::exists(golden_folder())) GTEST_SKIP() << "needs ../shared/golden/unigram";
  const auto tokenizer = open_unigram(golden_folder() + "/spiece.model");
  const auto* unigram = dynamic_cast<const UnigramTokenizer*>(tokenizer.get());
  ASSERT_NE(unigram, nullptr);
  const json golden = json::parse(std::ifstream(golden_folder() + "/normalised.json"));
  for (size_t i = 0; i < golden.at("strings").size(); ++i) {
    const auto text = golden.at("strings")[i].get<std::string>();
    EXPECT_EQ(unigram->normalise(text), golden.at("normalised")[i].get<std::string>()) << i << ": " << text;
  }
}

TEST(Unigram, EndsWithItsEndTokenWhenAsked) {
  const auto t = built(small_spiece());
  EXPECT_EQ(t->encode("", {}), (std::vector<TokenId>{1}));
  EXPECT_EQ(t->encode("a", {}), (std::vector<TokenId>{4, 1}));
  EXPECT_EQ(plain(*t, ""), (std::vector<TokenId>{}));
  EXPECT_EQ(plain(*t, "   "), (std::vector<TokenId>{}));
  EXPECT_EQ(t->description(), "SentencePiece unigram, 9 tokens");
  EXPECT_EQ(t->eos(), 1);
  EXPECT_TRUE(t->is_end_of_generation(1));
}

// ▁ab alone is −4, ▁a + b −4.25, ▁ + ab −5.
TEST(Unigram, TakesTheBestSum) {
  const auto t = built(small_spiece());
  EXPECT_EQ(plain(*t, "ab"), (std::vector<TokenId>{8}));
  EXPECT_EQ(plain(*t, "aab"), (std::vector<TokenId>{4, 7}));
  EXPECT_EQ(t->decode(std::vector<TokenId>{4, 7, 8}, {}), "aab ab");
}

TEST(Unigram, UnknownStretchesAreOneToken) {
  const auto t = built(small_spiece());
  EXPECT_EQ(plain(*t, "a zz b"), (std::vector<TokenId>{4, 3, 2, 3, 6}));
  EXPECT_EQ(plain(*t, "\xFF\xFE"), (std::vector<TokenId>{3, 2}));
  EXPECT_EQ(plain(*t, "</s>"), (std::vector<TokenId>{3, 2}));  // text, not the token …
  EXPECT_EQ(t->encode("</s>", {.add_special = false, .parse_special = true}),
            (std::vector<TokenId>{1}));  // … unless asked
}

TEST(Unigram, BytesStandInForUnknownCharacters) {
  SpieceBuilder model = small_spiece();
  for (int byte = 0; byte < 256; ++byte) {
    char text[8];
    std::snprintf(text, sizeof text, "<0x%02X>", byte);
    model.piece(text, 0, 6);
  }
  model.trainer.number(35, 1);
  const auto t = built(model);
  EXPECT_EQ(plain(*t, "aé"), (std::vector<TokenId>{4, 9 + 0xC3, 9 + 0xA9}));
  EXPECT_EQ(t->decode(plain(*t, "aé"), {}), "aé");
}

TEST(Unigram, UserDefinedPiecesWinAndKeepTheirForm) {
  SpieceBuilder model = small_spiece();
  model.piece("<x>", 0, 4).piece("b<", -1);
  const auto t = built(model);
  EXPECT_EQ(plain(*t, "ab<x>b"), (std::vector<TokenId>{8, 9, 6}));
  EXPECT_EQ(t->decode(plain(*t, "ab<x>b"), {}), "ab<x>b");
}

TEST(Unigram, UnusedPiecesNeverMatch) {
  SpieceBuilder model = small_spiece();
  model.piece("▁abab", 100, 5);
  EXPECT_EQ(plain(*built(model), "abab"), (std::vector<TokenId>{8, 7}));
}

TEST(Unigram, WhiteSpaceAsTheModelSays) {
  SpieceBuilder model = small_spiece();
  model.normalizer.number(3, 0);
  EXPECT_EQ(plain(*built(model), " ab  b "), (std::vector<TokenId>{7, 3, 6}));
  model.normalizer.number(4, 0);
  EXPECT_EQ(plain(*built(model), " a  b "), (std::vector<TokenId>{4, 3, 3, 6, 3}));
}

// One rule, "x" → " y", in a trie of two levels.
TEST(Unigram, RulesOfTheCharsmap) {
  std::vector<uint32_t> units(512, 0x80000000);
  units[0] = 256u << 10;                        // the root's children are around 256
  units[256 ^ 'x'] = (4u << 10) | 0x100 | 'x';  // a rule ends; its leaf is 4 away
  units[256 ^ 'x' ^ 4] = 0x80000000 | 1;        // its replacement begins at 1
  std::string map(4, '\0');
  const auto bytes = static_cast<uint32_t>(units.size() * 4);
  std::memcpy(map.data(), &bytes, 4);
  map.append(reinterpret_cast<const char*>(units.data()), bytes);
  map += std::string("\0 y\0", 4);
  SpieceBuilder model = small_spiece();
  model.normalizer.string(2, map);
  const auto t = built(model);
  const auto* unigram = dynamic_cast<const UnigramTokenizer*>(t.get());
  ASSERT_NE(unigram, nullptr);
  EXPECT_EQ(unigram->normalise("ax"), "▁a▁y");
  EXPECT_EQ(unigram->normalise("x"), "▁y");         // the space of the replacement is stripped in front
  EXPECT_EQ(unigram->normalise("a xx"), "▁a▁y▁y");  // and after another
  EXPECT_EQ(unigram->normalise("a\xFF"), "▁a\xEF\xBF\xBD");
}

TEST(Unigram, RefusesBrokenVocabularies) {
  auto refusal = [](const SpieceBuilder& model) {
    Metadata metadata = parse_spiece(model.build(), "spiece.model").value();
    auto tokenizer = Tokenizer::from_metadata(metadata);
    return tokenizer.ok() ? std::string("accepted") : tokenizer.error().message;
  };
  SpieceBuilder twice = small_spiece();
  twice.piece("ab", -1);
  EXPECT_NE(refusal(twice).find("pieces 7 and 9 are both 'ab'"), std::string::npos) << refusal(twice);
  for (const std::string& map :
       {std::string("abc"), std::string("\x08\0\0\0", 4) + "1234", std::string("\0\0\0\0x\0", 6),
        std::string("\x04\0\0\0aaaa", 8), std::string("\x04\0\0\0aaaax", 9),
        std::string("\x04\0\0\0aaaa", 8) + std::string(256, 'x') + '\0'}) {
    SpieceBuilder model = small_spiece();
    model.normalizer.string(2, map);
    EXPECT_NE(refusal(model).find("charsmap"), std::string::npos) << refusal(model);
  }
}

// A damaged trie gives wrong rules, but nothing worse: sanitizers watch.
TEST(Unigram, DamagedTriesStayInside) {
  std::mt19937 random(5);
  for (int i = 0; i < 2000; ++i) {
    std::string map("\x40\0\0\0", 4);
    for (int k = 0; k < 64 + 8; ++k) map += static_cast<char>(random());
    map += '\0';
    SpieceBuilder model = small_spiece();
    model.normalizer.string(2, map);
    const auto t = built(model);
    std::string text;
    for (int k = 0; k < 20; ++k) text += static_cast<char>(random());
    for (TokenId id : plain(*t, text)) ASSERT_TRUE(id >= 0 && static_cast<size_t>(id) < t->size());
  }
}

}  // namespace
}  // namespace ridge
