// Byte-level BPE ("gpt2" in GGUF files): words from a pre-tokenizer, their bytes as visible characters, merges by rank.
//
// Not for: SentencePiece vocabularies (spm.h), pre-tokenizer expressions (pretokenize.h).
//
//   auto tokenizer = RIDGE_TRY(BpeTokenizer::take(metadata));
//   tokenizer->encode("Hello", {.add_special = false});     // any bytes: decode() gives them back exactly
#pragma once

#include <array>

#include "text/bpe_merge.h"
#include "text/pretokenize.h"
#include "text/tokenizer_base.h"

namespace ridge {

// Merges as ids: 12 bytes each and 6 bytes of table, where a map of string pairs takes ten times that.
class MergeTable {
 public:
  // `merges` are lines "left right". Of duplicates the first counts. A line without a space, or with a part or a result
  // that is not in the vocabulary, cannot happen and is left out.
  MergeTable(const Vocabulary& vocabulary, const StringPool& merges);

  MergeRule rule(uint32_t left, uint32_t right) const;
  size_t size() const { return merges_.size(); }
  uint64_t memory_bytes() const { return merges_.capacity() * sizeof(Merge) + index_.memory_bytes(); }

 private:
  struct Merge {
    uint32_t left, right, result;
  };
  std::vector<Merge> merges_;  // by rank
  HashIndex index_;
};

class BpeTokenizer final : public VocabularyTokenizer {
 public:
  // Moves vocabulary and merges out of the metadata.
  static Result<std::unique_ptr<Tokenizer>> take(Metadata& metadata);
  // How a text becomes words.
  struct Rules {
    const Pretokenizer* words;
    bool ignore_merges = false;  // a word that is in the vocabulary is that token, whatever the merges say
    bool to_nfc = false;         // a text is brought into Unicode's form C first (tokenizer.json of Qwen)
  };
  BpeTokenizer(Vocabulary vocabulary, SpecialTokenOptions special, const StringPool& merges, const Rules& rules);

  std::string description() const override;
  bool adds_space_prefix() const override { return false; }
  uint64_t memory_bytes() const override;

 private:
  void encode_text(std::string_view text, std::vector<TokenId>& out) const override;
  void encode_word(std::string_view word, MergeScratch& scratch, std::vector<TokenId>& out) const;
  void append_normal(std::string_view stored, std::string& out) const override;

  Rules rules_;
  MergeTable merges_;
  std::array<uint32_t, 256> byte_tokens_;  // the token of each single byte; kNoToken where the vocabulary lacks it
};

// The visible form of bytes that byte-level vocabularies store: " a" is "Ġa".
std::string bytes_to_visible(std::string_view bytes);
// The way back; characters that stand for no byte are kept as they are.
void append_visible_to_bytes(std::string_view visible, std::string& out);

}  // namespace ridge
