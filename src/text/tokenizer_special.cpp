#include "text/tokenizer_special.h"

#include <algorithm>
#include <map>

namespace ridge {
namespace {

bool is_special(TokenKind kind, const SpecialTokenOptions& options) {
  if (kind == TokenKind::user_defined) return !options.leaves_user_defined;
  return kind == TokenKind::control || kind == TokenKind::unknown;
}

bool is_ascii_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// A token that might be cut at `begin`, ordered by who is cut first.
struct Candidate {
  uint32_t bytes, begin;
  TokenId id;

  // The heap's top is its largest element.
  bool operator<(const Candidate& other) const {
    if (bytes != other.bytes) return bytes < other.bytes;
    if (id != other.id) return id > other.id;
    return begin > other.begin;
  }
};

struct Cut {
  uint32_t end;
  TokenId id;
};
using Cuts = std::map<uint32_t, Cut>;  // by where they begin

// How many bytes from `begin` are not cut out yet.
uint32_t free_bytes(const Cuts& cuts, uint32_t begin, size_t text_bytes) {
  const auto next = cuts.upper_bound(begin);
  if (next != cuts.begin() && std::prev(next)->second.end > begin) return 0;
  const auto end = next == cuts.end() ? static_cast<uint32_t>(text_bytes) : next->first;
  return end - begin;
}

}  // namespace

SpecialTokens::SpecialTokens(const Vocabulary& vocabulary, SpecialTokenOptions options) : options_(std::move(options)) {
  for (size_t i = 0; i < vocabulary.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    if (is_special(vocabulary.kind(id), options_) && !vocabulary.text(id).empty()) sorted_.push_back(id);
  }
  std::stable_sort(sorted_.begin(), sorted_.end(),
                   [&](TokenId a, TokenId b) { return vocabulary.text(a) < vocabulary.text(b); });
  sorted_.shrink_to_fit();
  size_t at = 0;
  for (uint32_t byte = 0; byte < 257; ++byte) {
    while (at < sorted_.size() && static_cast<uint8_t>(vocabulary.text(sorted_[at])[0]) < byte) ++at;
    first_byte_[byte] = static_cast<uint32_t>(at);
  }
}

// The longest token that `text` begins with. Walks down the sorted texts as down a trie: the range [low, high) holds
// those that agree with the first `depth` bytes.
SpecialTokens::Found SpecialTokens::longest_at(const Vocabulary& vocabulary, std::string_view text,
                                               bool parse_special) const {
  const uint8_t first = static_cast<uint8_t>(text[0]);
  auto low = sorted_.begin() + first_byte_[first];
  auto high = sorted_.begin() + first_byte_[first + 1u];
  Found best;
  for (size_t depth = 1; low != high;) {
    const std::string_view shortest = vocabulary.text(*low);
    if (shortest.size() == depth) {
      const bool wanted = parse_special || vocabulary.kind(*low) == TokenKind::user_defined;
      if (wanted && best.bytes < depth) best = {static_cast<uint32_t>(depth), *low};
      ++low;
      continue;
    }
    if (depth == text.size()) break;
    const char c = text[depth];
    auto byte_of = [&](TokenId id) { return static_cast<uint8_t>(vocabulary.text(id)[depth]); };
    low = std::partition_point(low, high, [&](TokenId id) { return byte_of(id) < static_cast<uint8_t>(c); });
    high = std::partition_point(low, high, [&](TokenId id) { return byte_of(id) == static_cast<uint8_t>(c); });
    ++depth;
  }
  return best;
}

size_t SpecialTokens::space_after(TokenId id, std::string_view text) const {
  if (!options_.swallows_space) return 0;
  if (std::find(options_.except.begin(), options_.except.end(), id) != options_.except.end()) return 0;
  return static_cast<size_t>(std::find_if_not(text.begin(), text.end(), is_ascii_space) - text.begin());
}

std::vector<TextPiece> SpecialTokens::cut(const Vocabulary& vocabulary, std::string_view text,
                                          bool parse_special) const {
  // One candidate per position, its longest; when a longer neighbour was cut from under it, its next shorter one is
  // tried. That visits (token, position) in the order of the rule without searching the text once per token.
  std::vector<Candidate> heap;
  for (uint32_t pos = 0; pos < text.size(); ++pos) {
    const Found found = longest_at(vocabulary, text.substr(pos), parse_special);
    if (found.bytes > 0) heap.push_back({found.bytes, pos, found.id});
  }
  std::make_heap(heap.begin(), heap.end());

  Cuts cuts;
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end());
    const Candidate candidate = heap.back();
    heap.pop_back();
    const uint32_t free = free_bytes(cuts, candidate.begin, text.size());
    if (candidate.bytes <= free) {
      const uint32_t end = candidate.begin + candidate.bytes;
      const size_t space = space_after(candidate.id, text.substr(end, free - candidate.bytes));
      cuts.emplace(candidate.begin, Cut{end + static_cast<uint32_t>(space), candidate.id});
      continue;
    }
    if (free == 0) continue;
    const Found shorter = longest_at(vocabulary, text.substr(candidate.begin, free), parse_special);
    if (shorter.bytes == 0) continue;
    heap.push_back({shorter.bytes, candidate.begin, shorter.id});
    std::push_heap(heap.begin(), heap.end());
  }

  std::vector<TextPiece> pieces;
  pieces.reserve(2 * cuts.size() + 1);
  size_t done = 0;
  for (const auto& [begin, c] : cuts) {
    if (begin > done) pieces.push_back({text.substr(done, begin - done), std::nullopt});
    pieces.push_back({text.substr(begin, c.end - begin), c.id});
    done = c.end;
  }
  if (done < text.size()) pieces.push_back({text.substr(done), std::nullopt});
  return pieces;
}

uint64_t SpecialTokens::memory_bytes() const {
  return (sorted_.capacity() + options_.except.capacity()) * sizeof(TokenId) + sizeof(first_byte_);
}

}  // namespace ridge
