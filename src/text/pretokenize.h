// Pre-tokenizers: the rules that cut a text into words before byte-level BPE merges inside each word.
//
// Published as regular expressions; here each expression is a small hand-written matcher over code points. A
// pre-tokenizer is a list of expressions: each works inside the pieces the one before has left, its matches and the
// gaps between them become pieces, and look-ahead sees a piece's end as the end of the text.
//
// Not for: SentencePiece vocabularies (they have none), special tokens (tokenizer_special.h cuts those before).
//
//   const Pretokenizer* rules = find_pretokenizer("smollm");        // nullptr if unknown
//   rules->split("I'm 12", [](std::string_view word) { … });         // "I" "'m" " " "1" "2"
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/function_ref.h"

namespace ridge {

// The outcome of trying one expression at one position.
struct Match {
  bool found = false;
  size_t bytes = 0;  // found: the match's length, > 0. Otherwise: how far ahead no match can begin, ≥ one character
};

using Expression = Match (*)(std::string_view piece, size_t pos);  // pos < piece.size()

struct Pretokenizer {
  std::string_view name;                    // as in tokenizer.ggml.pre
  std::span<const Expression> expressions;  // applied in this order
  bool ignore_merges = false;               // a word that is in the vocabulary is that token, whatever the merges say
  bool adds_bos = false;                    // unless tokenizer.ggml.add_bos_token says otherwise

  // Calls `word` for every word, in order; together they are the text. Linear in the length of the text.
  void split(std::string_view text, FunctionRef<void(std::string_view)> word) const;
};

// The row of the table with this name; nullptr if there is none.
const Pretokenizer* find_pretokenizer(std::string_view name);

// All names, separated by commas, for error messages.
std::string pretokenizer_names();

}  // namespace ridge
