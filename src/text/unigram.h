// SentencePiece unigram (Kudo 2018, "Subword Regularization", section 3.1), the tokenizer of T5: of all ways to cut the
// normalised text into pieces, the one whose scores have the largest sum (Viterbi).
//
// Not for: SentencePiece BPE (spm.h), sampling of segmentations, training.
//
//   auto tokenizer = RIDGE_TRY(UnigramTokenizer::take(metadata));
//   tokenizer->encode("red apple", {});      // "▁red" "▁apple" "</s>"
//
// Sums are in float32 and ties go to the first found, as in the reference: both are visible in its ids.
#pragma once

#include <array>
#include <span>

#include "text/charsmap.h"
#include "text/piece_index.h"
#include "text/tokenizer_base.h"

namespace ridge {

class UnigramTokenizer final : public VocabularyTokenizer {
 public:
  // Moves vocabulary, scores and charsmap out of the metadata ("t5" in GGUF files; format/spiece.h makes the same).
  static Result<std::unique_ptr<Tokenizer>> take(Metadata& metadata);

  struct WhiteSpace {
    bool dummy_prefix = true;  // one ▁ in front of the text
    bool remove_extra = true;  // none at its ends, one at most in the middle
  };
  struct Rules {
    Charsmap charsmap;
    WhiteSpace white_space;
    bool byte_fallback = false;  // an unknown character becomes its bytes' tokens
  };
  // `scores`: one per token, finite.
  UnigramTokenizer(Vocabulary vocabulary, std::vector<float> scores, Rules rules);

  // The text that pieces are looked for in: rules applied, spaces as ▁.
  std::string normalise(std::string_view text) const;

  std::string description() const override;
  bool adds_space_prefix() const override { return rules_.white_space.dummy_prefix; }
  uint64_t memory_bytes() const override;

 private:
  struct Edge;  // the best way to reach a byte

  void encode_text(std::string_view text, std::vector<TokenId>& out) const override;
  void append_normal(std::string_view stored, std::string& out) const override;
  Charsmap::Rule next_replacement(std::string_view text, size_t pos) const;
  void relax_from(std::string_view text, uint32_t start, std::span<Edge> best) const;
  void append_unknown(std::string_view text, bool after_unknown, std::vector<TokenId>& out) const;

  std::vector<float> scores_;
  Rules rules_;
  PieceIndex pieces_;
  std::array<uint32_t, 256> byte_tokens_;  // <0x00> … <0xFF>, where there are any
  float unknown_score_ = 0, highest_score_ = 0;
  bool has_user_defined_ = false;
};

}  // namespace ridge
