// Golden tokens: every vocabulary × every string × every mode, against ids and texts made by the reference.
#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/cache_folder.h"
#include "format/gguf.h"
#include "tests/text/valid_utf8.h"

namespace ridge {
namespace {

using nlohmann::json;

struct GoldenVocabulary {
  const char* name;   // in tokens.json
  const char* model;  // a real model's file name; nullptr: vocab/<name>.gguf of the shared data
  uint64_t memory_limit;
};

void PrintTo(const GoldenVocabulary& v, std::ostream* out) { *out << v.name; }

std::filesystem::path models_dir() {
  if (const char* dir = std::getenv("RIDGE_MODELS_DIR")) return dir;
  return cache_folder();
}

std::filesystem::path file_of(const GoldenVocabulary& v) {
  if (v.model != nullptr) return models_dir() / v.model;
  return std::filesystem::path(RIDGE_SHARED_DIR) / "vocab" / (std::string(v.name) + ".gguf");
}

class GoldenTokens : public testing::TestWithParam<GoldenVocabulary> {
 protected:
  void SetUp() override {
    const auto golden_path = std::filesystem::path(RIDGE_SHARED_DIR) / "golden" / "tokens.json";
    if (!std::filesystem::exists(golden_path)) GTEST_SKIP() << "needs ../shared/golden/tokens.json";
    const auto path = file_of(GetParam());
    if (!std::filesystem::exists(path)) {
      GTEST_SKIP() << (GetParam().model != nullptr ? "needs the demo models: " : "needs ../shared/vocab: ")
                   << path.filename();
    }
    golden_ = json::parse(std::ifstream(golden_path));
    auto gguf = Gguf::open(path.string());
    ASSERT_TRUE(gguf.ok()) << gguf.error().message;
    auto tokenizer = Tokenizer::from_metadata(gguf.value().metadata());
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
    tokenizer_ = std::move(tokenizer).value();
  }

  const json& strings() const { return golden_.at("strings"); }
  const json& expected(const char* what) const { return golden_.at("vocabularies").at(GetParam().name).at(what); }

  json golden_;
  std::unique_ptr<Tokenizer> tokenizer_;
};

TEST_P(GoldenTokens, PlainIds) {
  for (size_t i = 0; i < strings().size(); ++i) {
    const auto text = strings()[i].get<std::string>();
    EXPECT_EQ(tokenizer_->encode(text, {.add_special = false, .parse_special = false}),
              expected("plain")[i].get<std::vector<TokenId>>())
        << "string " << i << ": " << text;
  }
}

TEST_P(GoldenTokens, SpecialIds) {
  for (size_t i = 0; i < strings().size(); ++i) {
    const auto text = strings()[i].get<std::string>();
    EXPECT_EQ(tokenizer_->encode(text, {.add_special = true, .parse_special = true}),
              expected("special")[i].get<std::vector<TokenId>>())
        << "string " << i << ": " << text;
  }
}

TEST_P(GoldenTokens, DecodedText) {
  for (size_t i = 0; i < strings().size(); ++i) {
    const auto ids = expected("plain")[i].get<std::vector<TokenId>>();
    EXPECT_EQ(tokenizer_->decode(ids, {}), expected("text")[i].get<std::string>()) << "string " << i;
  }
}

TEST_P(GoldenTokens, StreamPrintsWhatDecodePrintsAndCutsNoCharacter) {
  for (const char* mode : {"plain", "special"}) {
    for (bool show : {false, true}) {
      for (size_t i = 0; i < strings().size(); ++i) {
        const auto ids = expected(mode)[i].get<std::vector<TokenId>>();
        const DecodeOptions options = {.show_special = show};
        DetokenizeStream stream(*tokenizer_, options);
        std::string text;
        for (TokenId id : ids) {
          const std::string chunk = stream.push(id);
          EXPECT_TRUE(is_valid_utf8(chunk)) << "string " << i;
          text += chunk;
        }
        EXPECT_EQ(stream.finish(), "") << "string " << i;
        EXPECT_EQ(text, tokenizer_->decode(ids, options)) << "string " << i;
      }
    }
  }
}

TEST_P(GoldenTokens, MemoryIsWithinTheBudget) {
  EXPECT_LT(tokenizer_->memory_bytes(), GetParam().memory_limit) << tokenizer_->description();
  EXPECT_GT(tokenizer_->memory_bytes(), tokenizer_->size() * 8);  // at least a text and an index entry each
}

TEST_P(GoldenTokens, EveryTextIsFoundAgain) {
  for (size_t i = 0; i < tokenizer_->size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    ASSERT_EQ(tokenizer_->find(tokenizer_->text(id)), id);
  }
  ASSERT_TRUE(tokenizer_->eos().has_value());
  EXPECT_TRUE(tokenizer_->is_end_of_generation(*tokenizer_->eos()));
}

std::string test_name(const testing::TestParamInfo<GoldenVocabulary>& vocabulary) {
  std::string name = vocabulary.param.name;
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
}

constexpr uint64_t kMiB = 1 << 20;
constexpr GoldenVocabulary kVocabularies[] = {
    {"smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf", 4 * kMiB},
    {"gemma3", "gemma-3-270m-Q4_K_M.gguf", 10 * kMiB},
    {"llama-bpe", nullptr, 12 * kMiB},
    {"llama-spm", nullptr, 2 * kMiB},
    {"qwen2", nullptr, 10 * kMiB},
    {"gpt-2", nullptr, 4 * kMiB},
    {"deepseek-llm", nullptr, 8 * kMiB},
    {"phi-3", nullptr, 2 * kMiB},
};
INSTANTIATE_TEST_SUITE_P(Of, GoldenTokens, testing::ValuesIn(kVocabularies), test_name);

}  // namespace
}  // namespace ridge
