// Two small vocabularies built by hand, so that tests of tokenizers need no files.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/gguf.h"
#include "text/bpe.h"
#include "text/tokenizer.h"

namespace ridge {

struct SmallVocabulary {
  std::vector<std::string> texts;
  std::vector<TokenKind> kinds;
  std::vector<float> scores;
  std::vector<std::string> merges;

  void add(std::string text, TokenKind kind = TokenKind::normal, float score = 0) {
    texts.push_back(std::move(text));
    kinds.push_back(kind);
    scores.push_back(score);
  }
  // A token and the merge that makes it of two others.
  void add_merge(const std::string& left, const std::string& right) {
    add(left + right);
    merges.push_back(left + " " + right);
  }
};

inline StringPool pool_of(const std::vector<std::string>& texts) {
  StringPool pool;
  for (const std::string& text : texts) pool.push_back(text);
  return pool;
}

inline void put_vocabulary(Metadata& metadata, const SmallVocabulary& v) {
  std::vector<int32_t> types;
  for (TokenKind kind : v.kinds) types.push_back(static_cast<int32_t>(kind));
  metadata.where = "small.gguf";
  metadata.entries()["tokenizer.ggml.tokens"] = MetadataArray(pool_of(v.texts));
  metadata.entries()["tokenizer.ggml.token_type"] = MetadataArray(std::move(types));
}

// "gpt2": 0..255 the single bytes, then words, then special tokens.
inline SmallVocabulary small_bpe_vocabulary() {
  SmallVocabulary v;
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    v.add(bytes_to_visible({&c, 1}));
  }
  v.add_merge("h", "e");
  v.add_merge("l", "l");
  v.add_merge("he", "ll");
  v.add_merge("hell", "o");
  v.add_merge("Ġ", "hello");
  v.add_merge("a", "a");
  v.add_merge("aa", "aa");
  v.add_merge("1", "2");
  v.add("<|im_start|>", TokenKind::control);
  v.add("<|im_end|>", TokenKind::normal);  // a wrong kind, as converters leave it
  v.add("<tool>", TokenKind::user_defined);
  v.add("<tool_call>", TokenKind::user_defined);
  v.add("<bos>", TokenKind::control);
  v.add("<eos>", TokenKind::control);
  return v;
}

inline Metadata small_bpe_metadata(std::string_view pre = "gpt-2") {
  const SmallVocabulary v = small_bpe_vocabulary();
  Metadata metadata;
  put_vocabulary(metadata, v);
  auto& entries = metadata.entries();
  entries["tokenizer.ggml.model"] = std::string("gpt2");
  entries["tokenizer.ggml.pre"] = std::string(pre);
  entries["tokenizer.ggml.merges"] = MetadataArray(pool_of(v.merges));
  entries["tokenizer.ggml.bos_token_id"] = static_cast<int64_t>(v.texts.size() - 2);
  entries["tokenizer.ggml.eos_token_id"] = static_cast<int64_t>(v.texts.size() - 1);
  return metadata;
}

// "llama": <unk> <s> </s>, 3..258 the bytes, then pieces.
inline SmallVocabulary small_spm_vocabulary() {
  SmallVocabulary v;
  v.add("<unk>", TokenKind::unknown);
  v.add("<s>", TokenKind::control);
  v.add("</s>", TokenKind::control);
  for (int byte = 0; byte < 256; ++byte) v.add(fmt::format("<0x{:02X}>", byte), TokenKind::byte);
  float score = -1;
  for (const char* piece : {"he", "ll", "llo", "hello", "▁hello", "▁▁", "▁", "h", "e", "l", "o", "a", "aa", "é"}) {
    v.add(piece, TokenKind::normal, score);
    score -= 1;
  }
  v.add("\n\n", TokenKind::user_defined);
  v.add("\n\n\n", TokenKind::user_defined);
  v.add("<|user|>", TokenKind::control);
  return v;
}

inline Metadata small_spm_metadata() {
  const SmallVocabulary v = small_spm_vocabulary();
  Metadata metadata;
  put_vocabulary(metadata, v);
  metadata.entries()["tokenizer.ggml.model"] = std::string("llama");
  metadata.entries()["tokenizer.ggml.scores"] = MetadataArray(v.scores);
  return metadata;
}

}  // namespace ridge
