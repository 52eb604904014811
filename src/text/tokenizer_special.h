// Cutting special tokens out of a text before anything else looks at it.
//
// The rule (that of the reference implementations): tokens by descending byte length, each searched from left to right
// through all text that longer ones have left, before the next shorter one is looked at. User-defined tokens always;
// control and unknown tokens only when special tokens are parsed. Matching is on the raw text.
//
// Not for: what happens inside the text that is left (bpe.h, spm.h).
//
//   for (const TextPiece& p : special.cut(vocabulary, "<|im_start|>user", true)) …    // a token, then "user"
#pragma once

#include <string_view>
#include <vector>

#include "text/piece_index.h"
#include "text/tokenizer_vocabulary.h"

namespace ridge {

struct TextPiece {
  std::string_view text;         // what a cut token stood for, or text between
  std::optional<TokenId> token;  // nullopt: text
};

struct SpecialTokenOptions {
  bool swallows_space = false;       // cut tokens take the ASCII white space after them along (phi-3) …
  std::vector<TokenId> except;       // … but not these
  bool leaves_user_defined = false;  // the tokenizer itself finds user-defined tokens (unigram.h)
};

// Immutable and thread-safe once built. 4 bytes per special token.
class SpecialTokens {
 public:
  SpecialTokens(const Vocabulary& vocabulary, SpecialTokenOptions options);

  // The pieces in order, views of `text` (below 4 GiB), none empty. `vocabulary` is the one given at construction.
  // Time: about one table look-up per byte, plus n log n in the number of tokens found.
  std::vector<TextPiece> cut(const Vocabulary& vocabulary, std::string_view text, bool parse_special) const;

  uint64_t memory_bytes() const;

 private:
  struct Found {
    uint32_t bytes = 0;  // 0: nothing
    TokenId id = 0;
  };
  Found longest_at(const Vocabulary& vocabulary, std::string_view text, bool parse_special) const;
  size_t space_after(TokenId id, std::string_view text) const;

  PieceIndex index_;
  SpecialTokenOptions options_;
};

}  // namespace ridge
