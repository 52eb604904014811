// Tokenizers on vocabularies built here: behaviour in small, broken vocabularies, random texts.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "tests/text/tokenizer_vocabularies.h"
#include "text/pretokenize.h"

namespace ridge {
namespace {

constexpr EncodeOptions kPlain = {.add_special = false, .parse_special = false};
constexpr EncodeOptions kParse = {.add_special = false, .parse_special = true};

std::unique_ptr<Tokenizer> build(Metadata metadata) {
  auto tokenizer = Tokenizer::from_metadata(metadata);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  return tokenizer.ok() ? std::move(tokenizer).value() : nullptr;
}

// The texts of the ids: easier to read than numbers.
std::vector<std::string> texts(const Tokenizer& t, std::string_view text, const EncodeOptions& options = kPlain) {
  std::vector<std::string> out;
  for (TokenId id : t.encode(text, options)) out.emplace_back(t.text(id));
  return out;
}
using Texts = std::vector<std::string>;

std::string random_bytes(std::mt19937& random, size_t most) {
  std::string text;
  for (size_t n = random() % (most + 1); n > 0; --n) text.push_back(static_cast<char>(random()));
  return text;
}

std::string random_parts(std::mt19937& random, size_t most, const std::vector<std::string>& parts) {
  std::string text;
  for (size_t n = random() % (most + 1); n > 0; --n) text += parts[random() % parts.size()];
  return text;
}

TEST(SmallBpe, MergesByRank) {
  auto t = build(small_bpe_metadata());
  EXPECT_EQ(texts(*t, "hello hello"), (Texts{"hello", "Ġhello"}));
  EXPECT_EQ(texts(*t, "hel"), (Texts{"he", "l"}));
  EXPECT_EQ(texts(*t, "aaaaaaa"), (Texts{"aaaa", "aa", "a"}));
  EXPECT_EQ(texts(*t, ""), Texts{});
  EXPECT_EQ(t->decode(t->encode("héllo hello\n", kPlain), {}), "héllo hello\n");
  EXPECT_EQ(t->description(), "BPE (gpt-2), 270 tokens");
  EXPECT_FALSE(t->adds_bos());
  EXPECT_FALSE(t->adds_space_prefix());
}

TEST(SmallBpe, SpecialTokens) {
  auto t = build(small_bpe_metadata());
  EXPECT_EQ(texts(*t, "<tool_call>hello<tool>"), (Texts{"<tool_call>", "hello", "<tool>"}));
  EXPECT_EQ(texts(*t, "<|im_start|>", kParse), (Texts{"<|im_start|>"}));
  EXPECT_EQ(t->encode("<|im_start|>", kPlain).size(), 12u);  // bytes: control tokens are not parsed
  const TokenId end = *t->find("<|im_end|>");
  EXPECT_EQ(t->kind(end), TokenKind::control);  // whatever the file says
  EXPECT_TRUE(t->is_end_of_generation(end));
  EXPECT_TRUE(t->is_end_of_generation(*t->eos()));
  EXPECT_FALSE(t->is_end_of_generation(*t->bos()));
  EXPECT_EQ(t->decode(t->encode("a<|im_end|>b<tool>", kParse), {}), "ab<tool>");
  EXPECT_EQ(t->decode(t->encode("a<|im_end|>b", kParse), {.show_special = true}), "a<|im_end|>b");
}

TEST(SmallBpe, BosAndEosAsTheFileSays) {
  Metadata metadata = small_bpe_metadata();
  metadata.entries()["tokenizer.ggml.add_bos_token"] = true;
  metadata.entries()["tokenizer.ggml.add_eos_token"] = true;
  auto t = build(std::move(metadata));
  EXPECT_EQ(texts(*t, "hello", {}), (Texts{"<bos>", "hello", "<eos>"}));
  EXPECT_EQ(texts(*t, "", {}), (Texts{"<bos>", "<eos>"}));
  EXPECT_EQ(texts(*t, "hello"), (Texts{"hello"}));
  EXPECT_TRUE(build(small_bpe_metadata("llama-bpe"))->adds_bos());
}

TEST(SmallBpe, IgnoreMergesTakesWholeWords) {
  for (const char* pre : {"llama-bpe", "gpt-2"}) {
    Metadata metadata = small_bpe_metadata(pre);
    SmallVocabulary v = small_bpe_vocabulary();
    v.add("oho");  // in the vocabulary, but no merge leads there
    put_vocabulary(metadata, v);
    const Texts expected = pre == std::string_view("gpt-2") ? Texts{"o", "h", "o"} : Texts{"oho"};
    EXPECT_EQ(texts(*build(std::move(metadata)), "oho"), expected) << pre;
  }
}

TEST(SmallBpe, OddMergesAreLeftOut) {
  Metadata metadata = small_bpe_metadata();
  metadata.entries()["tokenizer.ggml.merges"] =
      MetadataArray(pool_of({"l l", "nospace", "", " ", "x y", "absent h", "h absent", "h e", "l l", "he ll"}));
  auto t = build(std::move(metadata));
  EXPECT_EQ(texts(*t, "hell"), (Texts{"hell"}));
  EXPECT_EQ(texts(*t, "lll"), (Texts{"ll", "l"}));
  EXPECT_EQ(texts(*t, "xy"), (Texts{"x", "y"}));  // "xy" is no token
}

TEST(SmallBpe, AMissingByteIsLost) {
  Metadata metadata = small_bpe_metadata();
  SmallVocabulary v = small_bpe_vocabulary();
  v.texts[0x7A] = "[was z]";
  put_vocabulary(metadata, v);
  metadata.entries()["tokenizer.ggml.unknown_token_id"] = int64_t{5};
  EXPECT_EQ(texts(*build(std::move(metadata)), "azh"), (Texts{"a", "h"}));
}

TEST(SmallBpe, AnyBytesComeBackWithEveryPretokenizer) {
  std::mt19937 random(1);
  std::string names = pretokenizer_names() + ", ";
  for (size_t begin = 0, end; (end = names.find(", ", begin)) != names.npos; begin = end + 2) {
    auto t = build(small_bpe_metadata(names.substr(begin, end - begin)));
    for (int round = 0; round < 50; ++round) {
      const std::string text = random_bytes(random, 60);
      ASSERT_EQ(t->decode(t->encode(text, kPlain), {}), text);
    }
  }
}

// The rule in its simplest form: of all neighbours with a merge, the lowest rank, leftmost, until there is none.
TEST(SmallBpe, AgreesWithTheRuleItself) {
  const SmallVocabulary v = small_bpe_vocabulary();
  auto t = build(small_bpe_metadata());
  auto rank = [&](const std::string& left, const std::string& right) {
    return std::find(v.merges.begin(), v.merges.end(), left + " " + right) - v.merges.begin();
  };
  std::mt19937 random(2);
  for (int round = 0; round < 2000; ++round) {
    const std::string text = random_parts(random, 14, {"h", "e", "l", "o", "a", "hell"});
    Texts symbols;
    for (char c : text) symbols.emplace_back(1, c);
    for (;;) {
      auto best = static_cast<std::ptrdiff_t>(v.merges.size());
      size_t at = 0;
      for (size_t i = 0; i + 1 < symbols.size(); ++i) {
        if (const auto r = rank(symbols[i], symbols[i + 1]); r < best) best = r, at = i;
      }
      if (best == static_cast<std::ptrdiff_t>(v.merges.size())) break;
      symbols[at] += symbols[at + 1];
      symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    }
    ASSERT_EQ(texts(*t, text), symbols) << text;
  }
}

TEST(SmallSpm, MergesByScoreWithAPrefixSpace) {
  auto t = build(small_spm_metadata());
  EXPECT_EQ(texts(*t, "hello", {}), (Texts{"<s>", "▁hello"}));
  EXPECT_EQ(texts(*t, "hello  hello"), (Texts{"▁hello", "▁", "▁hello"}));
  EXPECT_EQ(texts(*t, ""), Texts{});
  EXPECT_EQ(texts(*t, "", {}), (Texts{"<s>"}));
  EXPECT_EQ(texts(*t, "é€"), (Texts{"▁", "é", "<0xE2>", "<0x82>", "<0xAC>"}));
  EXPECT_TRUE(t->adds_space_prefix());
  EXPECT_EQ(t->description(), "SentencePiece BPE, 276 tokens");
}

TEST(SmallSpm, SpecialTokens) {
  auto t = build(small_spm_metadata());
  EXPECT_EQ(texts(*t, "h\n\n\n\n\nh"), (Texts{"▁", "h", "\n\n\n", "\n\n", "▁", "h"}));
  EXPECT_EQ(texts(*t, "<|user|>hello", kParse), (Texts{"<|user|>", "▁hello"}));
  EXPECT_EQ(texts(*t, "<unk>", kParse), (Texts{"<unk>"}));
  EXPECT_TRUE(t->is_end_of_generation(2));
}

TEST(SmallSpm, DecodingDropsTheSpaceItHadAdded) {
  auto t = build(small_spm_metadata());
  const auto ids = t->encode("hello hello", {});
  EXPECT_EQ(t->decode(ids, {}), "hello hello");  // BOS prints nothing and is not the first
  EXPECT_EQ(t->decode(ids, {.keep_leading_space = true}), " hello hello");
  EXPECT_EQ(t->decode(ids, {.show_special = true}), "<s> hello hello");
  EXPECT_EQ(t->decode(t->encode("  hello", kPlain), {}), "  hello");
}

TEST(SmallSpm, NoPrefixWhereTheFileSaysSo) {
  Metadata metadata = small_spm_metadata();
  metadata.entries()["tokenizer.ggml.add_space_prefix"] = false;
  auto t = build(std::move(metadata));
  EXPECT_EQ(texts(*t, "hello hello"), (Texts{"hello", "▁hello"}));
  EXPECT_EQ(t->decode(t->encode(" hello", kPlain), {}), " hello");
}

TEST(SmallSpm, AnyBytesComeBack) {
  auto t = build(small_spm_metadata());
  std::mt19937 random(3);
  for (int round = 0; round < 500; ++round) {
    const std::string text = random_bytes(random, 60);
    ASSERT_EQ(t->decode(t->encode(text, kPlain), {}), text);
  }
}

TEST(SmallSpm, WithoutByteTokensTheUnknownTokenStandsIn) {
  SmallVocabulary v;
  v.add("<unk>", TokenKind::unknown);
  v.add("▁");
  v.add("h");
  Metadata metadata = small_spm_metadata();
  put_vocabulary(metadata, v);
  metadata.entries()["tokenizer.ggml.scores"] = MetadataArray(v.scores);
  auto t = build(std::move(metadata));
  EXPECT_EQ(texts(*t, "hxh"), (Texts{"▁", "h", "<unk>", "h"}));
  EXPECT_EQ(t->bos(), 1);  // the defaults of the kind, where they are inside of the vocabulary
  EXPECT_EQ(t->eos(), 2);
}

TEST(SmallSpm, OrderOfScoresIncludesOddOnes) {
  SmallVocabulary v = small_spm_vocabulary();
  const auto score = [&](const char* text) -> float& {
    return v.scores[static_cast<size_t>(std::find(v.texts.begin(), v.texts.end(), text) - v.texts.begin())];
  };
  score("he") = -0.0f;
  score("ll") = 0.0f;  // equal to −0: the leftmost first
  score("llo") = std::numeric_limits<float>::quiet_NaN();
  score("hello") = -std::numeric_limits<float>::infinity();
  Metadata metadata = small_spm_metadata();
  metadata.entries()["tokenizer.ggml.scores"] = MetadataArray(v.scores);
  auto t = build(std::move(metadata));
  EXPECT_EQ(texts(*t, "hello"), (Texts{"▁hello"}));
  EXPECT_EQ(t->decode(t->encode("hellollhe", kPlain), {}), "hellollhe");
}

TEST(SmallSpm, Phi3TokensSwallowTheSpaceAfterThem) {
  for (const char* name : {"Phi3", "phi-3-mini", "other"}) {
    Metadata metadata = small_spm_metadata();
    metadata.entries()["general.name"] = std::string(name);
    auto t = build(std::move(metadata));
    const bool swallows = name != std::string_view("other");
    EXPECT_EQ(texts(*t, "<|user|> \n\thello", kParse),
              (swallows ? Texts{"<|user|>", "▁hello"} : Texts{"<|user|>", "▁▁", "<0x0A>", "<0x09>", "hello"}))
        << name;
    EXPECT_EQ(texts(*t, "<s> hello", kParse), (Texts{"<s>", "▁", "▁hello"})) << name;
    EXPECT_EQ(texts(*t, "</s>  ", kParse), (swallows ? Texts{"</s>"} : Texts{"</s>", "▁▁", "▁"})) << name;
    // <|user|> is longer, so it is cut first and takes the line breaks along before their own tokens are looked for.
    EXPECT_EQ(texts(*t, "<|user|> \n\n\n h", kParse),
              (swallows ? Texts{"<|user|>", "▁", "h"} : Texts{"<|user|>", "▁▁", "\n\n\n", "▁▁", "h"}))
        << name;
  }
}

// The rule in its simplest form: each token, longest first, is searched through every fragment of text.
TEST(SpecialTokens, AgreeWithTheRuleItself) {
  SmallVocabulary v = small_spm_vocabulary();
  for (const char* text : {"a", "ab", "aba", "bb", "bba", "abab", "ccccc", "cc"}) v.add(text, TokenKind::user_defined);
  for (const char* text : {"abc", "cab", "b"}) v.add(text, TokenKind::control);
  Metadata metadata;
  put_vocabulary(metadata, v);
  auto vocabulary = Vocabulary::take(metadata, {});
  ASSERT_TRUE(vocabulary.ok());
  const SpecialTokens special(vocabulary.value(), {});

  std::mt19937 random(4);
  for (int round = 0; round < 4000; ++round) {
    const std::string text = random_parts(random, 25, {"a", "b", "c", "x"});
    const bool parse = round % 2 == 0;
    struct Fragment {
      std::string text;
      TokenId token;
    };
    std::vector<Fragment> fragments;
    if (!text.empty()) fragments.push_back({text, -1});
    std::vector<TokenId> order;
    for (TokenId id = 0; id < static_cast<TokenId>(v.texts.size()); ++id) {
      const TokenKind kind = vocabulary.value().kind(id);
      if (kind == TokenKind::user_defined || (parse && (kind == TokenKind::control || kind == TokenKind::unknown))) {
        order.push_back(id);
      }
    }
    std::stable_sort(order.begin(), order.end(), [&](TokenId a, TokenId b) {
      return vocabulary.value().text(a).size() > vocabulary.value().text(b).size();
    });
    for (TokenId id : order) {
      const std::string token(vocabulary.value().text(id));
      std::vector<Fragment> next;
      for (const Fragment& f : fragments) {
        size_t begin = 0;
        for (size_t at; f.token < 0 && (at = f.text.find(token, begin)) != std::string::npos;
             begin = at + token.size()) {
          if (at > begin) next.push_back({f.text.substr(begin, at - begin), -1});
          next.push_back({token, id});
        }
        if (begin < f.text.size()) next.push_back({f.text.substr(begin), f.token});
      }
      fragments = std::move(next);
    }
    const auto pieces = special.cut(vocabulary.value(), text, parse);
    ASSERT_EQ(pieces.size(), fragments.size()) << text;
    for (size_t i = 0; i < pieces.size(); ++i) {
      ASSERT_EQ(pieces[i].text, fragments[i].text) << text;
      ASSERT_EQ(pieces[i].token.value_or(-1), fragments[i].token) << text;
    }
  }
}

TEST(DetokenizeStream, HoldsUnfinishedCharactersAndPassesBadBytes) {
  auto t = build(small_spm_metadata());
  auto byte = [](uint8_t b) { return static_cast<TokenId>(3 + b); };
  DetokenizeStream stream(*t, {});
  EXPECT_EQ(stream.push(*t->find("▁hello")), "hello");
  EXPECT_EQ(stream.push(byte(0xE2)), "");
  EXPECT_EQ(stream.push(byte(0x82)), "");
  EXPECT_EQ(stream.push(byte(0xAC)), "€");
  EXPECT_EQ(stream.push(byte(0xFF)), "\xFF");
  EXPECT_EQ(stream.push(byte(0xF0)), "");
  EXPECT_EQ(stream.push(*t->find("h")), "\xF0h");
  EXPECT_EQ(stream.push(byte(0xC3)), "");
  EXPECT_EQ(stream.finish(), "\xC3");
}

TEST(DetokenizeStream, PrintsWhatDecodePrints) {
  std::mt19937 random(5);
  for (const auto& t : {build(small_bpe_metadata()), build(small_spm_metadata())}) {
    for (int round = 0; round < 300; ++round) {
      std::vector<TokenId> ids;
      for (int n = 0; n < 20; ++n) ids.push_back(static_cast<TokenId>(random() % (t->size() + 2)) - 1);
      const DecodeOptions options = {.show_special = round % 2 == 0, .keep_leading_space = round % 3 == 0};
      DetokenizeStream stream(*t, options);
      std::string text;
      for (TokenId id : ids) text += stream.push(id);
      text += stream.finish();
      ASSERT_EQ(text, t->decode(ids, options));
    }
  }
}

TEST(Tokenizer, IdsOutsideAreEmpty) {
  auto t = build(small_bpe_metadata());
  for (TokenId id : {-1, 100000, std::numeric_limits<TokenId>::min(), std::numeric_limits<TokenId>::max()}) {
    EXPECT_EQ(t->text(id), "");
    EXPECT_EQ(t->piece(id, true), "");
    EXPECT_EQ(t->kind(id), TokenKind::undefined);
    EXPECT_FALSE(t->is_end_of_generation(id));
  }
}

TEST(Tokenizer, OneLongWord) {
  const std::string text(1 << 20, 'a');
  for (const auto& t : {build(small_bpe_metadata()), build(small_spm_metadata())}) {
    const auto ids = t->encode(text, kPlain);
    EXPECT_LT(ids.size(), text.size());
    EXPECT_EQ(t->decode(ids, {}), text);
  }
}

TEST(Tokenizer, DuplicateAndEmptyTexts) {
  Metadata metadata = small_bpe_metadata();
  SmallVocabulary v = small_bpe_vocabulary();
  v.add("hello");
  v.add("");
  v.add("", TokenKind::user_defined);
  v.add("<tool>", TokenKind::control);
  put_vocabulary(metadata, v);
  auto t = build(std::move(metadata));
  EXPECT_LT(*t->find("hello"), 270);
  EXPECT_EQ(t->find(""), std::nullopt);
  EXPECT_EQ(texts(*t, "hello<tool>", kParse), (Texts{"hello", "<tool>"}));
}

TEST(Tokenizer, EndOfMessageIsNoEndWhereTurnsHaveTheirOwn) {
  for (bool has_messages : {false, true}) {
    Metadata metadata = small_bpe_metadata("gpt-4o");
    SmallVocabulary v = small_bpe_vocabulary();
    v.add("<|end|>", TokenKind::control);
    if (has_messages) v.add("<|return|>", TokenKind::control);
    if (has_messages) v.add("<|call|>", TokenKind::control);
    put_vocabulary(metadata, v);
    auto t = build(std::move(metadata));
    EXPECT_EQ(t->is_end_of_generation(*t->find("<|end|>")), !has_messages);
  }
}

struct Broken {
  const char* what;
  void (*break_it)(Metadata&);
  const char* message;  // a part of it
};

TEST(BrokenVocabulary, IsBadInputWithAReason) {
  const Broken cases[] = {
      {"no model", [](Metadata& m) { m.erase("tokenizer.ggml.model"); }, "has no tokenizer"},
      {"none", [](Metadata& m) { m.entries()["tokenizer.ggml.model"] = std::string("none"); }, "has no tokenizer"},
      {"bert", [](Metadata& m) { m.entries()["tokenizer.ggml.model"] = std::string("bert"); }, "WordPiece"},
      {"bert", [](Metadata& m) { m.entries()["tokenizer.ggml.model"] = std::string("bert"); }, "WordPiece"},
      {"strange", [](Metadata& m) { m.entries()["tokenizer.ggml.model"] = std::string("x\n"); }, "not supported"},
      {"model no string", [](Metadata& m) { m.entries()["tokenizer.ggml.model"] = true; }, "expected a string"},
      {"pre", [](Metadata& m) { m.entries()["tokenizer.ggml.pre"] = std::string("no-such"); }, "smollm"},
      {"no tokens", [](Metadata& m) { m.erase("tokenizer.ggml.tokens"); }, "no vocabulary"},
      {"tokens no array", [](Metadata& m) { m.entries()["tokenizer.ggml.tokens"] = true; }, "no vocabulary"},
      {"tokens no strings",
       [](Metadata& m) { m.entries()["tokenizer.ggml.tokens"] = MetadataArray(std::vector<int32_t>{1}); },
       "no vocabulary"},
      {"empty", [](Metadata& m) { m.entries()["tokenizer.ggml.tokens"] = MetadataArray(StringPool()); }, "is empty"},
      {"short types",
       [](Metadata& m) {
         m.entries()["tokenizer.ggml.token_type"] = MetadataArray(std::vector<int32_t>{1, 2});
       },
       "has 2 entries, but there are 270 tokens"},
      {"types no integers",
       [](Metadata& m) { m.entries()["tokenizer.ggml.token_type"] = MetadataArray(std::vector<float>{1}); },
       "integers"},
      {"types no array", [](Metadata& m) { m.entries()["tokenizer.ggml.token_type"] = true; }, "integers"},
      {"no merges", [](Metadata& m) { m.erase("tokenizer.ggml.merges"); }, "tokenizer.ggml.merges"},
      {"merges no strings",
       [](Metadata& m) { m.entries()["tokenizer.ggml.merges"] = MetadataArray(std::vector<float>{1}); }, "merges"},
      {"bos outside", [](Metadata& m) { m.entries()["tokenizer.ggml.bos_token_id"] = int64_t{270}; }, "past the end"},
      {"eos no integer", [](Metadata& m) { m.entries()["tokenizer.ggml.eos_token_id"] = 1.5; }, "no integer"},
      {"add_bos", [](Metadata& m) { m.entries()["tokenizer.ggml.add_bos_token"] = 1.5; }, "boolean"},
      {"name", [](Metadata& m) { m.entries()["general.name"] = true; }, "general.name"},
  };
  for (const Broken& broken : cases) {
    Metadata metadata = small_bpe_metadata();
    broken.break_it(metadata);
    const auto result = Tokenizer::from_metadata(metadata);
    ASSERT_FALSE(result.ok()) << broken.what;
    EXPECT_EQ(result.error().code, ErrorCode::bad_input) << broken.what;
    EXPECT_NE(result.error().message.find(broken.message), std::string::npos) << result.error().message;
    EXPECT_EQ(result.error().message.find("small.gguf: "), 0u) << result.error().message;
    EXPECT_EQ(result.error().message.find('\n'), std::string::npos) << result.error().message;
  }
}

TEST(BrokenVocabulary, SpmNeedsScores) {
  Metadata metadata = small_spm_metadata();
  metadata.erase("tokenizer.ggml.scores");
  auto missing = Tokenizer::from_metadata(metadata);
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().message.find("scores is missing"), std::string::npos) << missing.error().message;

  metadata = small_spm_metadata();
  metadata.entries()["tokenizer.ggml.scores"] = MetadataArray(std::vector<float>{1, 2, 3});
  auto short_one = Tokenizer::from_metadata(metadata);
  ASSERT_FALSE(short_one.ok());
  EXPECT_NE(short_one.error().message.find("has 3 entries"), std::string::npos) << short_one.error().message;
}

TEST(OddVocabulary, IdsThatMeanNoneAndAbsentKinds) {
  Metadata metadata = small_bpe_metadata("llama-bpe");
  metadata.entries()["tokenizer.ggml.bos_token_id"] = int64_t{0xFFFFFFFF};
  metadata.entries()["tokenizer.ggml.eos_token_id"] = int64_t{-1};
  metadata.erase("tokenizer.ggml.token_type");
  auto t = build(std::move(metadata));
  EXPECT_EQ(t->bos(), std::nullopt);
  EXPECT_EQ(t->eos(), std::nullopt);
  EXPECT_FALSE(t->adds_bos());  // said in a warning
  EXPECT_EQ(texts(*t, "hello", {}), (Texts{"hello"}));
  EXPECT_EQ(t->kind(*t->find("<tool>")), TokenKind::normal);
}

TEST(OddVocabulary, TheArraysAreTaken) {
  Metadata metadata = small_spm_metadata();
  ASSERT_TRUE(Tokenizer::from_metadata(metadata).ok());
  for (const char* key : {"tokens", "scores", "token_type"}) {
    EXPECT_EQ(metadata.find(std::string("tokenizer.ggml.") + key), nullptr) << key;
  }
}

}  // namespace
}  // namespace ridge
