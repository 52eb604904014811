// Which tokens a text begins with: ids sorted by their texts, walked down as a trie. 4 bytes per token.
//
//   PieceIndex index(vocabulary, ids);
//   index.for_each_prefix(vocabulary, "apple pie", [&](TokenId id, uint32_t bytes) { … });   // "a", "app", "apple"
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "text/tokenizer_vocabulary.h"

namespace ridge {

// Immutable and thread-safe once built. `vocabulary` is always the one given at construction.
class PieceIndex {
 public:
  // No text of these ids is empty.
  PieceIndex(const Vocabulary& vocabulary, std::vector<TokenId> ids);

  // Calls `found(id, bytes)` for each token that `text`, not empty, begins with; the shortest first, of equal texts the
  // one that came first in `ids`.
  void for_each_prefix(const Vocabulary& vocabulary, std::string_view text,
                       FunctionRef<void(TokenId id, uint32_t bytes)> found) const;

  uint64_t memory_bytes() const { return sorted_.capacity() * sizeof(TokenId) + sizeof(first_byte_); }

 private:
  std::vector<TokenId> sorted_;
  std::array<uint32_t, 257> first_byte_;  // where in sorted_ the texts beginning with a byte start
};

}  // namespace ridge
