#include "format/tokenizer_json.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <random>

#include "format/base64.h"
#include "tests/format/allocation_count.h"
#include "tests/temp_folder.h"

namespace ridge {
namespace {

using nlohmann::json;
using test::AllocationPeak;

constexpr const char* kQwenSplit =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

json small_bpe() {
  return {{"version", "1.0"},
          {"added_tokens",
           {{{"id", 4}, {"content", "<|endoftext|>"}, {"special", true}},
            {{"id", 5}, {"content", "<tool>"}, {"special", false}}}},
          {"normalizer", {{"type", "NFC"}}},
          {"pre_tokenizer",
           {{"type", "Sequence"},
            {"pretokenizers",
             {{{"type", "Split"}, {"pattern", {{"Regex", kQwenSplit}}}, {"behavior", "Isolated"}, {"invert", false}},
              {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}}},
          {"post_processor", {{"type", "ByteLevel"}}},
          {"decoder", {{"type", "ByteLevel"}}},
          {"model",
           {{"type", "BPE"}, {"vocab", {{"a", 0}, {"b", 1}, {"ab", 2}, {"Ġ", 3}}}, {"merges", json::array({"a b"})}}}};
}

json small_unigram() {
  return {
      {"added_tokens",
       {{{"id", 0}, {"content", "<pad>"}, {"special", true}}, {{"id", 1}, {"content", "</s>"}, {"special", true}}}},
      {"normalizer", {{"type", "Precompiled"}, {"precompiled_charsmap", "AQID/w=="}}},
      {"pre_tokenizer",
       {{"type", "Sequence"},
        {"pretokenizers",
         {{{"type", "WhitespaceSplit"}}, {{"type", "Metaspace"}, {"replacement", "▁"}, {"add_prefix_space", true}}}}}},
      {"post_processor",
       {{"type", "TemplateProcessing"},
        {"single", {{{"Sequence", {{"id", "A"}}}}, {{"SpecialToken", {{"id", "</s>"}}}}}}}},
      {"model",
       {{"type", "Unigram"},
        {"unk_id", 2},
        {"vocab", json::array({json::array({"<pad>", 0}), json::array({"</s>", 0.0}), json::array({"<unk>", 0}),
                               json::array({"▁a", -1.5}), json::array({"b", -2})})}}}};
}

Result<Metadata> parse(const std::string& text) {
  return parse_tokenizer_json({reinterpret_cast<const uint8_t*>(text.data()), text.size()}, "tokenizer.json");
}
Result<Metadata> parse(const json& file) { return parse(file.dump()); }

std::string refusal(const std::string& text) {
  Result<Metadata> metadata = parse(text);
  if (metadata.ok()) return "accepted";
  EXPECT_EQ(metadata.error().code, ErrorCode::bad_input);
  EXPECT_EQ(metadata.error().message.find('\n'), std::string::npos);
  EXPECT_EQ(metadata.error().message.rfind("tokenizer.json: ", 0), 0u) << metadata.error().message;
  return metadata.error().message;
}

TEST(TokenizerJson, ByteLevelBpeBecomesGgufMetadata) {
  Result<Metadata> read = parse(small_bpe());
  ASSERT_TRUE(read.ok()) << read.error().message;
  const Metadata& m = read.value();
  EXPECT_EQ(m.require_string("tokenizer.ggml.model").value(), "gpt2");
  EXPECT_EQ(m.require_string("tokenizer.ggml.pre").value(), "qwen2");
  EXPECT_EQ(m.require_string("tokenizer.ridge.normalizer").value(), "NFC");
  EXPECT_EQ(m.boolean("tokenizer.ridge.ignore_merges").value(), false);
  EXPECT_EQ(m.boolean("tokenizer.ggml.add_bos_token").value(), false);
  const StringPool* texts = m.strings("tokenizer.ggml.tokens").value();
  ASSERT_EQ(texts->size(), 6u);
  EXPECT_EQ((*texts)[2], "ab");
  EXPECT_EQ((*texts)[4], "<|endoftext|>");
  EXPECT_EQ(m.numbers("tokenizer.ggml.token_type").value(), (std::vector<double>{1, 1, 1, 1, 3, 4}));
  const StringPool* merges = m.strings("tokenizer.ggml.merges").value();
  ASSERT_EQ(merges->size(), 1u);
  EXPECT_EQ((*merges)[0], "a b");
}

TEST(TokenizerJson, MergesMayBePairsAndIdsMayHaveHoles) {
  json file = small_bpe();
  file["model"]["merges"] = json::array({json::array({"a", "b"})});
  file["model"]["vocab"]["far"] = 40;
  file["model"]["ignore_merges"] = true;
  Result<Metadata> read = parse(file);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ((*read.value().strings("tokenizer.ggml.merges").value())[0], "a b");
  EXPECT_EQ(read.value().strings("tokenizer.ggml.tokens").value()->size(), 41u);
  EXPECT_EQ(read.value().numbers("tokenizer.ggml.token_type").value()[20], 5);
  EXPECT_EQ(read.value().boolean("tokenizer.ridge.ignore_merges").value(), true);
}

TEST(TokenizerJson, PretokenizersBecomeTheirRow) {
  json file = small_bpe();
  file["pre_tokenizer"] = {{"type", "ByteLevel"}, {"add_prefix_space", false}};
  EXPECT_EQ(parse(file).value().require_string("tokenizer.ggml.pre").value(), "gpt-2");
  file["pre_tokenizer"] = {{"type", "Sequence"},
                           {"pretokenizers",
                            {{{"type", "Digits"}, {"individual_digits", true}},
                             {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}}}};
  EXPECT_EQ(parse(file).value().require_string("tokenizer.ggml.pre").value(), "smollm");
}

TEST(TokenizerJson, UnigramBecomesGgufMetadata) {
  Result<Metadata> read = parse(small_unigram());
  ASSERT_TRUE(read.ok()) << read.error().message;
  const Metadata& m = read.value();
  EXPECT_EQ(m.require_string("tokenizer.ggml.model").value(), "t5");
  EXPECT_EQ(m.uint("tokenizer.ggml.unknown_token_id").value(), 2u);
  EXPECT_EQ(m.uint("tokenizer.ggml.eos_token_id").value(), 1u);
  EXPECT_EQ(m.boolean("tokenizer.ggml.add_eos_token").value(), true);
  EXPECT_EQ(m.boolean("tokenizer.ggml.remove_extra_whitespaces").value(), true);
  EXPECT_EQ(m.boolean("tokenizer.ggml.add_space_prefix").value(), true);
  EXPECT_EQ(m.numbers("tokenizer.ggml.precompiled_charsmap").value(), (std::vector<double>{1, 2, 3, 255}));
  EXPECT_EQ(m.numbers("tokenizer.ggml.scores").value(), (std::vector<double>{0, 0, 0, -1.5, -2}));
  EXPECT_EQ(m.numbers("tokenizer.ggml.token_type").value(), (std::vector<double>{3, 3, 2, 1, 1}));
}

struct Broken {
  const char* words;
  std::function<void(json&)> break_it;
};

TEST(TokenizerJson, RefusesWhatWouldChangeTheIds) {
  const json pre = small_bpe()["pre_tokenizer"];
  const Broken cases[] = {
      {"'WordPiece'", [](json& f) { f["model"]["type"] = "WordPiece"; }},
      {"no model", [](json& f) { f.erase("model"); }},
      {"no vocabulary", [](json& f) { f["model"].erase("vocab"); }},
      {"'Lowercase'",
       [](json& f) {
         f["normalizer"] = {{"type", "Lowercase"}};
       }},
      {"no pre-tokenizer", [](json& f) { f["pre_tokenizer"] = nullptr; }},
      {"'Whitespace'",
       [](json& f) {
         f["pre_tokenizer"] = {{"type", "Whitespace"}};
       }},
      {"add_prefix_space", [](json& f) { f["pre_tokenizer"]["pretokenizers"][1].erase("add_prefix_space"); }},
      {"unknown expression", [](json& f) { f["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "a+"; }},
      {"'Removed'", [](json& f) { f["pre_tokenizer"]["pretokenizers"][0]["behavior"] = "Removed"; }},
      {"sequence of pre-tokenizers", [](json& f) { f["pre_tokenizer"]["pretokenizers"][1]["use_regex"] = true; }},
      {"end_of_word_suffix", [](json& f) { f["model"]["end_of_word_suffix"] = "</w>"; }},
      {"byte_fallback", [](json& f) { f["model"]["byte_fallback"] = true; }},
      {"dropout", [](json& f) { f["model"]["dropout"] = 0.5; }},
      {"by the text around it", [](json& f) { f["added_tokens"][1]["single_word"] = true; }},
      {"by the text around it", [](json& f) { f["added_tokens"][1]["lstrip"] = true; }},
      {"no id or no content", [](json& f) { f["added_tokens"][0].erase("id"); }},
      {"both have id 1", [](json& f) { f["model"]["vocab"]["a"] = 1; }},
      {"has id -1", [](json& f) { f["model"]["vocab"]["a"] = -1; }},
      {"has id 100000000", [](json& f) { f["model"]["vocab"]["a"] = 100'000'000; }},
      {"model.vocab holds", [](json& f) { f["model"]["vocab"]["a"] = 1.5; }},
      {"model.vocab holds", [](json& f) { f["model"]["vocab"]["a"] = "x"; }},
      {"model.vocab holds", [](json& f) { f["model"]["vocab"]["a"] = json::array({1}); }},
      {"model.merges holds", [](json& f) { f["model"]["merges"][0] = 3; }},
      {"model.merges holds", [](json& f) { f["model"]["merges"][0] = json::array({"a"}); }},
      {"model.merges holds",
       [](json& f) {
         f["model"]["merges"][0] = json::array({"a", "b", "c"});
       }},
      {"model.merges holds",
       [](json& f) {
         f["model"]["merges"] = {{"a", "b"}, {"c", json::object()}};
       }},
      {"'BertProcessing'",
       [](json& f) {
         f["post_processor"] = {{"type", "BertProcessing"}};
       }},
  };
  for (const Broken& c : cases) {
    json file = small_bpe();
    c.break_it(file);
    EXPECT_NE(refusal(file.dump()).find(c.words), std::string::npos)
        << refusal(file.dump()) << ", expected " << c.words;
  }
}

TEST(TokenizerJson, RefusesOtherUnigrams) {
  const Broken cases[] = {
      {"unk_id", [](json& f) { f["model"]["unk_id"] = 5; }},
      {"unk_id", [](json& f) { f["model"]["unk_id"] = nullptr; }},
      {"base64", [](json& f) { f["normalizer"]["precompiled_charsmap"] = "A"; }},
      {"'NFKC'",
       [](json& f) {
         f["normalizer"] = {{"type", "NFKC"}};
       }},
      {"Metaspace", [](json& f) { f["pre_tokenizer"] = nullptr; }},
      {"'Metaspace'", [](json& f) { f["pre_tokenizer"]["pretokenizers"][1]["replacement"] = "_"; }},
      {"does not exist", [](json& f) { f["post_processor"]["single"][1]["SpecialToken"]["id"] = "<none>"; }},
      {"two tokens on one side",
       [](json& f) {
         f["post_processor"]["single"].push_back({{"SpecialToken", {{"id", "<pad>"}}}});
       }},
      {"leaves out the text", [](json& f) { f["post_processor"]["single"] = json::array(); }},
      {"model.vocab holds",
       [](json& f) {
         f["model"]["vocab"][3] = json::array({"x", "y"});
       }},
      {"model.vocab holds", [](json& f) { f["model"]["vocab"][3] = json::array({"x"}); }},
      {"model.vocab holds", [](json& f) { f["model"]["vocab"][3] = "x"; }},
      {"without scores",
       [](json& f) {
         f["model"]["vocab"] = {{"a", 0}};
       }},
  };
  for (const Broken& c : cases) {
    json file = small_unigram();
    c.break_it(file);
    EXPECT_NE(refusal(file.dump()).find(c.words), std::string::npos)
        << refusal(file.dump()) << ", expected " << c.words;
  }
}

TEST(TokenizerJson, RefusesWhatIsNoJson) {
  EXPECT_NE(refusal("").find("cut short"), std::string::npos);
  EXPECT_NE(refusal("{\"model\": x}").find("no JSON"), std::string::npos);
  EXPECT_NE(refusal("[]").find("no object"), std::string::npos);
  EXPECT_NE(refusal("7").find("no object"), std::string::npos);
  EXPECT_NE(refusal("{\"a\": \"\xFF\"}").find("no JSON"), std::string::npos);
  EXPECT_NE(refusal("{\"a\": 1e999}").find("no JSON"), std::string::npos);
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  EXPECT_NE(refusal("{\"a\": " + deep + "}").find("deeper"), std::string::npos);
  std::string many = "{\"a\": [0";
  for (int i = 0; i < 300'000; ++i) many += ",0";
  EXPECT_NE(refusal(many + "]}").find("more entries"), std::string::npos);
}

void expect_sound_or_refused(const std::string& text) {
  AllocationPeak peak;
  Result<Metadata> metadata = parse(text);
  ASSERT_LE(peak.bytes(), 8 * text.size() + (32 << 20));
  if (!metadata.ok()) {
    ASSERT_EQ(metadata.error().code, ErrorCode::bad_input);
    ASSERT_EQ(metadata.error().message.find('\n'), std::string::npos) << metadata.error().message;
    return;
  }
  const size_t n = metadata.value().strings("tokenizer.ggml.tokens").value()->size();
  ASSERT_GT(n, 0u);
  ASSERT_EQ(metadata.value().numbers("tokenizer.ggml.token_type").value().size(), n);
}

TEST(TokenizerJson, EveryCutIsRefused) {
  for (const json& file : {small_bpe(), small_unigram()}) {
    const std::string text = file.dump();
    ASSERT_EQ(refusal(text), "accepted");
    for (size_t length = 0; length < text.size(); ++length) {
      const std::string message = refusal(text.substr(0, length));
      ASSERT_NE(message.find("cut short"), std::string::npos) << length << ": " << message;
    }
  }
}

TEST(TokenizerJson, FlippedBitsAreRefusedOrHarmless) {
  std::mt19937 random(2);
  for (const json& file : {small_bpe(), small_unigram()}) {
    const std::string original = file.dump();
    for (int i = 0; i < 10'000; ++i) {
      std::string text = original;
      for (auto flips = 1 + random() % 3; flips > 0; --flips) {
        const size_t at = random() % text.size();
        // Often a character that JSON gives a meaning to.
        constexpr std::string_view signs = "{}[],:\"0123456789\\-";
        text[at] = random() % 2 == 0 ? signs[random() % signs.size()]
                                     : static_cast<char>(static_cast<uint8_t>(text[at]) ^ (1u << random() % 8));
      }
      ASSERT_NO_FATAL_FAILURE(expect_sound_or_refused(text)) << text;
    }
  }
}

TEST(TokenizerJson, GreedyFilesStayWithinTheBound) {
  json file = small_bpe();
  for (int i = 0; i < 100'000; ++i) file["model"]["vocab"][std::to_string(i)] = 10 + i;
  for (int i = 0; i < 100'000; ++i) file["model"]["merges"].push_back("");
  expect_sound_or_refused(file.dump());
  json holes = small_bpe();
  holes["model"]["vocab"]["far"] = 1030;
  expect_sound_or_refused(holes.dump());
}

TEST(TokenizerJson, FilesAreRead) {
  test::TempFolder folder;
  const std::string text = small_unigram().dump(2);
  test::write_file(folder / "tokenizer.json", {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  EXPECT_TRUE(read_tokenizer_json(folder / "tokenizer.json").ok());
  EXPECT_FALSE(read_tokenizer_json(folder / "none").ok());
}

TEST(Base64, DecodesAndRefuses) {
  EXPECT_EQ(decode_base64(""), "");
  EXPECT_EQ(decode_base64("Zg=="), "f");
  EXPECT_EQ(decode_base64("Zm8="), "fo");
  EXPECT_EQ(decode_base64("Zm9vYmFy"), "foobar");
  EXPECT_EQ(decode_base64("//79"), "\xFF\xFE\xFD");
  for (const char* bad : {"Zg=", "Z", "Zg==Zg==", "Z===", "Zm9!", "=Zm9", "Zm 9"}) {
    EXPECT_EQ(decode_base64(bad), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace ridge
