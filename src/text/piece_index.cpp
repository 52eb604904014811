#include "text/piece_index.h"

#include <algorithm>
#include <utility>

namespace ridge {

PieceIndex::PieceIndex(const Vocabulary& vocabulary, std::vector<TokenId> ids) : sorted_(std::move(ids)) {
  std::stable_sort(sorted_.begin(), sorted_.end(),
                   [&](TokenId a, TokenId b) { return vocabulary.text(a) < vocabulary.text(b); });
  sorted_.shrink_to_fit();
  size_t at = 0;
  for (uint32_t byte = 0; byte < 257; ++byte) {
    while (at < sorted_.size() && static_cast<uint8_t>(vocabulary.text(sorted_[at])[0]) < byte) ++at;
    first_byte_[byte] = static_cast<uint32_t>(at);
  }
}

// The range [low, high) holds the texts that agree with the first `depth` bytes.
void PieceIndex::for_each_prefix(const Vocabulary& vocabulary, std::string_view text,
                                 FunctionRef<void(TokenId id, uint32_t bytes)> found) const {
  const auto first = static_cast<uint8_t>(text[0]);
  auto low = sorted_.begin() + first_byte_[first];
  auto high = sorted_.begin() + first_byte_[first + 1u];
  for (size_t depth = 1; low != high; ++depth) {
    for (; low != high && vocabulary.text(*low).size() == depth; ++low) found(*low, static_cast<uint32_t>(depth));
    if (depth == text.size()) return;
    const auto next = static_cast<uint8_t>(text[depth]);
    auto byte_of = [&](TokenId id) { return static_cast<uint8_t>(vocabulary.text(id)[depth]); };
    low = std::partition_point(low, high, [&](TokenId id) { return byte_of(id) < next; });
    high = std::partition_point(low, high, [&](TokenId id) { return byte_of(id) == next; });
  }
}

}  // namespace ridge
