// What SentencePiece does to a text before it looks for pieces: the rules of the model's own charsmap (nmt_nfkc and the
// like), and white space.
//
// The charsmap is a double-array trie (Aoe 1989, in the layout of darts-clone) from byte strings to offsets in a list
// of replacements:
//
//   u32 bytes of the trie · the trie, u32 units · NUL-terminated replacements          (all little-endian)
//   unit      offset = (u >> 10) << ((u & 0x200) >> 6) · bit 8: a rule ends here · label = u & 0x800000FF
//             of a leaf: u & 0x7FFFFFFF is the offset of the replacement
//
// Not for: Unicode normalisation by name (utf8proc has that); nothing here knows what nmt_nfkc is.
//
//   Charsmap map = RIDGE_TRY(Charsmap::from_bytes(std::move(bytes), "spiece.model"));
//   Charsmap::Rule rule = map.longest("ﬁn", 0);          // {3, "fi"}
//
// Thread-safe once built. A damaged trie gives wrong rules, never a read outside of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ridge {

class Charsmap {
 public:
  Charsmap() = default;  // no rules
  // Empty bytes: no rules. Bad input if the sizes do not fit together; `where` begins the message.
  static Result<Charsmap> from_bytes(std::string_view bytes, std::string_view where);

  struct Rule {
    size_t bytes = 0;              // of the text; 0: no rule begins here
    std::string_view replacement;  // a view of the charsmap
  };
  // The longest rule that matches at byte `pos`.
  Rule longest(std::string_view text, size_t pos) const;

  bool empty() const { return units_.empty(); }
  uint64_t memory_bytes() const { return units_.capacity() * sizeof(uint32_t) + replacements_.capacity(); }

 private:
  std::vector<uint32_t> units_;
  std::string replacements_;  // ends with a NUL
};

}  // namespace ridge
