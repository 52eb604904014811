// SentencePiece BPE ("llama" in GGUF files: Llama 1 and 2, Mistral, Gemma, Phi-3): spaces become ▁, neighbouring pieces
// join by the score of the joined token, and what is in no token becomes bytes. No pre-tokenizer, no normalisation.
//
// Not for: SentencePiece unigram ("t5"), byte-level BPE (bpe.h).
//
//   auto tokenizer = RIDGE_TRY(SpmTokenizer::take(metadata));
//   tokenizer->encode("Hello", {});      // BOS, "▁Hello"
#pragma once

#include <array>

#include "text/bpe_merge.h"
#include "text/tokenizer_base.h"

namespace ridge {

class SpmTokenizer final : public VocabularyTokenizer {
 public:
  // Moves vocabulary and scores out of the metadata.
  static Result<std::unique_ptr<Tokenizer>> take(Metadata& metadata);

  enum class SpacePrefix : bool { no, yes };
  SpmTokenizer(Vocabulary vocabulary, SpecialTokenOptions special, const std::vector<float>& scores,
               SpacePrefix prefix);

  std::string description() const override;
  bool adds_space_prefix() const override { return adds_space_prefix_; }
  uint64_t memory_bytes() const override;

 private:
  void encode_text(std::string_view text, std::vector<TokenId>& out) const override;
  void append_normal(std::string_view stored, std::string& out) const override;
  // ' ' → ▁, with one more in front if the model wants it.
  std::string escape(std::string_view text) const;

  std::vector<uint32_t> order_;            // by token: rank of its score, 0 the highest; equal scores share a rank
  std::array<uint32_t, 256> byte_tokens_;  // <0x00> … <0xFF>, or what stands in where the vocabulary lacks one
  bool adds_space_prefix_;
};

}  // namespace ridge
