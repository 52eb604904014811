// What tokenizers with a vocabulary of texts have in common: the order of encoding (BOS, special tokens cut out, the
// text between, EOS), special ids, and printing single tokens.
//
// Not for: how text between special tokens becomes ids (bpe.h, spm.h).
//
//   class MyTokenizer final : public VocabularyTokenizer {
//     void encode_text(std::string_view text, std::vector<TokenId>& out) const override { … }
//     void append_normal(std::string_view stored, std::string& out) const override { out += stored; }
//   };
#pragma once

#include <string>

#include "text/tokenizer_special.h"
#include "text/tokenizer_vocabulary.h"

namespace ridge {

class VocabularyTokenizer : public Tokenizer {
 public:
  std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options) const final;
  std::string piece(TokenId id, bool show_special) const final;
  std::string_view text(TokenId id) const final { return vocabulary_.text(id); }
  TokenKind kind(TokenId id) const final { return vocabulary_.kind(id); }
  std::optional<TokenId> find(std::string_view text) const final { return vocabulary_.find(text); }
  size_t size() const final { return vocabulary_.size(); }
  std::optional<TokenId> bos() const final { return vocabulary_.bos(); }
  std::optional<TokenId> eos() const final { return vocabulary_.eos(); }
  bool adds_bos() const final { return vocabulary_.adds_bos(); }
  bool is_end_of_generation(TokenId id) const final { return vocabulary_.is_end_of_generation(id); }

 protected:
  VocabularyTokenizer(Vocabulary vocabulary, SpecialTokenOptions special);

  // Appends the ids of a text without special tokens: the whole text, or what lies between two of them. Not empty.
  virtual void encode_text(std::string_view text, std::vector<TokenId>& out) const = 0;
  // Appends what a normal token prints.
  virtual void append_normal(std::string_view stored, std::string& out) const = 0;

  const Vocabulary& vocabulary() const { return vocabulary_; }
  uint64_t base_memory_bytes() const { return vocabulary_.memory_bytes() + special_.memory_bytes(); }

 private:
  Vocabulary vocabulary_;
  SpecialTokens special_;
};

// How special tokens behave in this model: phi-3's take the white space after them along.
Result<SpecialTokenOptions> special_token_options(const Metadata& metadata, const Vocabulary& vocabulary);

// Appends a SentencePiece text with its marks ▁ (U+2581) as the spaces they stand for.
void append_with_spaces(std::string_view stored, std::string& out);

// The byte a text such as "<0x0A>" stands for.
std::optional<uint8_t> byte_of_text(std::string_view text);

}  // namespace ridge
