// UTF-8 and the character classes that pre-tokenizers speak of.
//
// Not for: normalisation (no supported vocabulary wants it), case mapping, rendering.
//
//   Char c = char_at("naïve", 2);               // the ï: {.value = 0xEF, .bytes = 2, .classes = kLetter | …}
//   size_t wait = incomplete_suffix("\xE2\x96"); // 2: a character may still be completed
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ridge {

// Unicode 15.1 general categories, merged into what the expressions of pre-tokenizers ask for. Every character has
// exactly one of the first four.
enum CharClass : uint16_t {
  kLetter = 1 << 0,       // \p{L}
  kNumber = 1 << 1,       // \p{N}
  kSpace = 1 << 2,        // \s: the 25 code points with the White_Space property
  kOther = 1 << 3,        // [^\s\p{L}\p{N}], unassigned code points and bad bytes included
  kPunctuation = 1 << 4,  // \p{P}
  kCased = 1 << 5,        // \p{Lu} \p{Ll} \p{Lt}
  kUpperOrNone = 1 << 6,  // \p{Lu} \p{Lt} \p{Lm} \p{Lo} \p{M}
  kLowerOrNone = 1 << 7,  // \p{Ll} \p{Lm} \p{Lo} \p{M}
  kMark = 1 << 8,         // \p{M}
  kSymbol = 1 << 9,       // \p{S}
};

struct Char {
  uint32_t value = 0;    // the code point; U+FFFD for a byte that is no part of a valid character
  uint32_t bytes = 0;    // 0 at the end of the text
  uint16_t classes = 0;  // of CharClass; none at the end of the text

  bool is(unsigned any_of) const { return (classes & any_of) != 0; }
};

// The classes of a code point.
uint16_t char_classes(uint32_t code_point);

// The character at byte `pos` ≤ text.size(). Strict: an overlong form, a surrogate, a value past U+10FFFF or a cut
// character yields its first byte alone.
Char char_at(std::string_view text, size_t pos);

// How many bytes at the end of `text` (0..3) begin a valid character that is not yet complete.
size_t incomplete_suffix(std::string_view text);

// Appends the UTF-8 form of a code point below U+110000.
void append_utf8(uint32_t code_point, std::string& out);

}  // namespace ridge
