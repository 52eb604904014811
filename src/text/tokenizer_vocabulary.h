// The vocabulary of a GGUF file: texts, kinds, special tokens, and the way from a text to its id. Shared by all kinds
// of tokenizer.
//
// Not for: scores and merges (spm.h, bpe.h), cutting special tokens out of a text (tokenizer_special.h).
//
//   Vocabulary v = RIDGE_TRY(Vocabulary::take(metadata, {.adds_bos = true}));
//   std::optional<TokenId> id = v.find("<|im_end|>");
//   bool stop = id && v.is_end_of_generation(*id);
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "format/gguf.h"
#include "text/tokenizer.h"
#include "text/tokenizer_index.h"

namespace ridge {

// What holds where the file says nothing.
struct VocabularyDefaults {
  // Ids outside of the vocabulary are ignored.
  std::optional<TokenId> bos = std::nullopt;
  std::optional<TokenId> eos = std::nullopt;
  std::optional<TokenId> unknown = std::nullopt;
  bool adds_bos = false;
};

// Immutable and thread-safe once built.
class Vocabulary {
 public:
  // Moves the texts out of the metadata. Bad input: no tokens, lengths that differ, special ids outside.
  static Result<Vocabulary> take(Metadata& metadata, const VocabularyDefaults& defaults);

  size_t size() const { return texts_.size(); }
  bool has(TokenId id) const { return id >= 0 && static_cast<size_t>(id) < size(); }
  // Empty and `undefined` for an id outside.
  std::string_view text(TokenId id) const { return has(id) ? texts_[static_cast<size_t>(id)] : std::string_view(); }
  TokenKind kind(TokenId id) const { return has(id) ? kinds_[static_cast<size_t>(id)] : TokenKind::undefined; }
  // The lowest id with this text; an empty text has none.
  std::optional<TokenId> find(std::string_view text) const;
  size_t longest_text() const { return longest_text_; }

  std::optional<TokenId> bos() const { return bos_; }
  std::optional<TokenId> eos() const { return eos_; }
  std::optional<TokenId> unknown() const { return unknown_; }
  bool adds_bos() const { return adds_bos_ && bos_; }
  bool adds_eos() const { return adds_eos_ && eos_; }
  bool is_end_of_generation(TokenId id) const;
  uint64_t memory_bytes() const;

 private:
  Result<void> take_kinds(Metadata& metadata);
  void index_texts();
  Result<void> read_special_ids(const Metadata& metadata, const VocabularyDefaults& defaults);
  void mark_end_of_generation(std::optional<TokenId> end_of_turn, std::optional<TokenId> end_of_message);

  StringPool texts_;
  std::vector<TokenKind> kinds_;
  HashIndex index_;
  std::vector<TokenId> end_of_generation_;  // sorted
  std::optional<TokenId> bos_, eos_, unknown_;
  bool adds_bos_ = false;
  bool adds_eos_ = false;
  size_t longest_text_ = 0;
};

// `tokenizer.ggml.scores` or the like, moved out as `count` floats; nullopt if absent. Bad input for another length or
// type.
Result<std::optional<std::vector<float>>> take_floats(Metadata& metadata, std::string_view key, size_t count);

}  // namespace ridge
