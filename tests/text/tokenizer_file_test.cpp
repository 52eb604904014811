// tokenizer.json and spiece.model as whole tokenizers: golden ids of anima-mini's prompts, and the qwen2 vocabulary
// written as JSON and read back.
#include "text/tokenizer_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "format/gguf.h"
#include "format/spiece.h"
#include "format/tokenizer_json.h"
#include "tests/format/spiece_builder.h"
#include "tests/temp_folder.h"
#include "text/image_prompt.h"
#include "text/nfc.h"

namespace ridge {
namespace {

using nlohmann::json;

std::string shared(const std::string& path) { return std::string(RIDGE_SHARED_DIR) + "/" + path; }

std::unique_ptr<Tokenizer> opened(const std::string& path) {
  auto tokenizer = open_tokenizer_file(path);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  return tokenizer.ok() ? std::move(tokenizer).value() : nullptr;
}

// An integer tensor of a safetensors file: u64 length, JSON, data.
class IdTensors {
 public:
  explicit IdTensors(const std::string& path) : file_(path, std::ios::binary) {
    uint64_t length = 0;
    file_.read(reinterpret_cast<char*>(&length), 8);
    std::string text(length, '\0');
    file_.read(text.data(), static_cast<std::streamsize>(length));
    header_ = json::parse(text);
    data_ = 8 + length;
  }
  std::vector<TokenId> operator[](const std::string& name) {
    const json& tensor = header_.at(name);
    const auto begin = tensor.at("data_offsets")[0].get<uint64_t>(), end = tensor.at("data_offsets")[1].get<uint64_t>();
    const size_t width = tensor.at("dtype") == "I64" ? 8 : 4;
    std::vector<char> bytes(end - begin);
    file_.seekg(static_cast<std::streamoff>(data_ + begin));
    file_.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    std::vector<TokenId> ids(bytes.size() / width);
    for (size_t i = 0; i < ids.size(); ++i) std::memcpy(&ids[i], bytes.data() + i * width, 4);
    return ids;
  }

 private:
  std::ifstream file_;
  json header_;
  uint64_t data_ = 0;
};

TEST(TokenizerFile, AnimaMinisPrompts) {
  const std::string folder = RIDGE_TEST_DATA "/../../demo/anima-mini/";
  const auto qwen = opened(folder + "tokenizer.json"), t5 = opened(folder + "spiece.model");
  ASSERT_TRUE(qwen && t5);
  const json prompts = json::parse(std::ifstream(folder + "prompts.json"));
  IdTensors golden(folder + "golden.safetensors");
  ASSERT_EQ(prompts.size(), 6u);
  for (size_t i = 0; i < prompts.size(); ++i) {
    auto prompt = encode_image_prompt(*qwen, *t5, prompts[i].get<std::string>());
    ASSERT_TRUE(prompt.ok());
    EXPECT_EQ(prompt.value().qwen, golden[std::to_string(i) + ".qwen_ids"]) << prompts[i];
    EXPECT_EQ(prompt.value().t5, golden[std::to_string(i) + ".t5_ids"]) << prompts[i];
  }
  auto empty = encode_image_prompt(*qwen, *t5, "");
  ASSERT_TRUE(empty.ok());
  EXPECT_EQ(empty.value().qwen, (std::vector<TokenId>{0}));
  EXPECT_EQ(empty.value().t5, (std::vector<TokenId>{1}));
}

// The qwen2 vocabulary as the hub's tokenizer.json would have it.
std::string qwen2_as_json(Metadata& metadata) {
  const auto texts = std::get<StringPool>(*metadata.take_array("tokenizer.ggml.tokens"));
  const auto kinds = std::get<std::vector<int32_t>>(*metadata.take_array("tokenizer.ggml.token_type"));
  const auto merges = std::get<StringPool>(*metadata.take_array("tokenizer.ggml.merges"));
  json file = {
      {"model", {{"type", "BPE"}}},
      {"pre_tokenizer",
       {{"type", "Sequence"},
        {"pretokenizers",
         {{{"type", "Split"},
           {"pattern",
            {{"Regex",
              R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"}}},
           {"behavior", "Isolated"}},
          {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}}}};
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::string text(texts[i]);
    if (kinds[i] == 3 || kinds[i] == 4) {
      file["added_tokens"].push_back({{"id", i}, {"content", text}, {"special", kinds[i] == 3}});
    } else {
      file["model"]["vocab"][text] = i;
    }
  }
  for (size_t i = 0; i < merges.size(); ++i) {
    const std::string_view line = merges[i];
    const size_t space = line.find(' ', 1);
    file["model"]["merges"].push_back({std::string(line.substr(0, space)), std::string(line.substr(space + 1))});
  }
  return file.dump();
}

TEST(TokenizerFile, Qwen2VocabularyAsJsonGivesTheGoldenIds) {
  const std::string path = shared("vocab/qwen2.gguf");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "needs ../shared/vocab/qwen2.gguf";
  auto gguf = Gguf::open(path);
  ASSERT_TRUE(gguf.ok());
  const std::string text = qwen2_as_json(gguf.value().metadata());
  auto metadata = parse_tokenizer_json({reinterpret_cast<const uint8_t*>(text.data()), text.size()}, "tokenizer.json");
  ASSERT_TRUE(metadata.ok()) << metadata.error().message;
  auto made = Tokenizer::from_metadata(metadata.value());
  ASSERT_TRUE(made.ok()) << made.error().message;
  const json golden = json::parse(std::ifstream(shared("golden/tokens.json")));
  const json& expected = golden.at("vocabularies").at("qwen2");
  for (size_t i = 0; i < golden.at("strings").size(); ++i) {
    const auto string = golden.at("strings")[i].get<std::string>();
    EXPECT_EQ(made.value()->encode(string, {.add_special = false}), expected.at("plain")[i].get<std::vector<TokenId>>())
        << i << ": " << string;
    EXPECT_EQ(made.value()->encode(string, {.add_special = true, .parse_special = true}),
              expected.at("special")[i].get<std::vector<TokenId>>())
        << i << ": " << string;
  }
}

std::string base64_of(const std::vector<int32_t>& bytes) {
  constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t bits = 0;
    for (size_t k = i; k < i + 3; ++k) bits = bits << 8 | (k < bytes.size() ? static_cast<uint32_t>(bytes[k]) : 0);
    for (size_t k = 0; k < 4; ++k) text += i + k <= bytes.size() ? kAlphabet[bits >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

// A spiece.model as the hub's tokenizer.json would have it.
std::string spiece_as_json(Metadata& metadata) {
  const auto texts = std::get<StringPool>(*metadata.take_array("tokenizer.ggml.tokens"));
  const auto kinds = std::get<std::vector<int32_t>>(*metadata.take_array("tokenizer.ggml.token_type"));
  const auto scores = std::get<std::vector<float>>(*metadata.take_array("tokenizer.ggml.scores"));
  const auto map = std::get<std::vector<int32_t>>(*metadata.take_array("tokenizer.ggml.precompiled_charsmap"));
  json file = {{"model", {{"type", "Unigram"}, {"unk_id", *metadata.uint("tokenizer.ggml.unknown_token_id").value()}}},
               {"normalizer", {{"type", "Precompiled"}, {"precompiled_charsmap", base64_of(map)}}},
               {"pre_tokenizer",
                {{"type", "Sequence"},
                 {"pretokenizers",
                  {{{"type", "WhitespaceSplit"}},
                   {{"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", "always"}}}}}}};
  for (size_t i = 0; i < texts.size(); ++i) {
    file["model"]["vocab"].push_back({std::string(texts[i]), scores[i]});
    if (kinds[i] == 3)
      file["added_tokens"].push_back({{"id", i}, {"content", std::string(texts[i])}, {"special", true}});
  }
  return file.dump();
}

TEST(TokenizerFile, AUnigramModelAsJsonGivesTheGoldenIds) {
  const std::string folder = shared("golden/unigram");
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "needs ../shared/golden/unigram";
  Metadata spiece = read_spiece(folder + "/spiece.model").value();
  const std::string text = spiece_as_json(spiece);
  auto metadata = parse_tokenizer_json({reinterpret_cast<const uint8_t*>(text.data()), text.size()}, "tokenizer.json");
  ASSERT_TRUE(metadata.ok()) << metadata.error().message;
  const auto tokenizer = Tokenizer::from_metadata(metadata.value()).value();
  const json golden = json::parse(std::ifstream(folder + "/tokens.json"));
  for (size_t i = 0; i < golden.at("strings").size(); ++i) {
    const auto string = golden.at("strings")[i].get<std::string>();
    EXPECT_EQ(tokenizer->encode(string, {.add_special = false}), golden.at("ids")[i].get<std::vector<TokenId>>())
        << string;
  }
}

TEST(TokenizerFile, KnowsItsKinds) {
  test::TempFolder folder;
  auto kind = [&](std::string_view bytes) {
    test::write_file(folder / "f", {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
    return tokenizer_file_kind(folder / "f").value();
  };
  EXPECT_EQ(kind("{\"model\""), TokenizerFileKind::tokenizer_json);
  EXPECT_EQ(kind("\n \t{}"), TokenizerFileKind::tokenizer_json);
  const auto spiece = test::small_spiece().build();
  EXPECT_EQ(kind({reinterpret_cast<const char*>(spiece.data()), spiece.size()}), TokenizerFileKind::spiece);
  for (std::string_view other : {"", "\n", "GGUF\3\0\0\0", "x", "[]"}) EXPECT_EQ(kind(other), TokenizerFileKind::other);
  EXPECT_FALSE(open_tokenizer_file(folder / "f").ok());
  EXPECT_FALSE(tokenizer_file_kind(folder / "none").ok());
}

TEST(Nfc, ComposesWhatItCan) {
  EXPECT_EQ(to_nfc("plain"), "plain");
  EXPECT_EQ(to_nfc("e\xCC\x81"), "\xC3\xA9");                     // e + acute
  EXPECT_EQ(to_nfc("\xE2\x84\xAB"), "\xC3\x85");                  // Ångström sign → Å
  EXPECT_EQ(to_nfc("\xE1\x84\x92\xE1\x85\xA1"), "\xED\x95\x98");  // Hangul
  EXPECT_EQ(to_nfc("q\xCC\x81"), "q\xCC\x81");                    // nothing composed exists
  EXPECT_EQ(to_nfc("e\xCC\x81\xFF"), "e\xCC\x81\xFF");            // no UTF-8: as it is
  EXPECT_EQ(to_nfc(""), "");
}

TEST(Nfc, IsAppliedWhereTheFileAsksForIt) {
  json file = {
      {"normalizer", {{"type", "NFC"}}},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
      {"model", {{"type", "BPE"}, {"vocab", {{"Ã", 0}, {"©", 1}, {"e", 2}, {"Ì", 3}, {"ģ", 4}}}, {"merges", {}}}}};
  auto ids = [&] {
    const std::string text = file.dump();
    auto metadata = parse_tokenizer_json({reinterpret_cast<const uint8_t*>(text.data()), text.size()}, "t");
    EXPECT_TRUE(metadata.ok()) << metadata.error().message;
    return Tokenizer::from_metadata(metadata.value()).value()->encode("e\xCC\x81", {.add_special = false});
  };
  EXPECT_EQ(ids(), (std::vector<TokenId>{0, 1}));
  file["normalizer"] = nullptr;
  EXPECT_EQ(ids(), (std::vector<TokenId>{2, 3, 4}));
}

}  // namespace
}  // namespace ridge
