#include "text/tokenizer_special.h"

#include <algorithm>
#include <map>

namespace ridge {
namespace {

bool is_special(TokenKind kind, const SpecialTokenOptions& options) {
  if (kind == TokenKind::user_defined) return !options.leaves_user_defined;
  return kind == TokenKind::control || kind == TokenKind::unknown;
}

std::vector<TokenId> special_ids(const Vocabulary& vocabulary, const SpecialTokenOptions& options) {
  std::vector<TokenId> ids;
  for (size_t i = 0; i < vocabulary.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    if (is_special(vocabulary.kind(id), options) && !vocabulary.text(id).empty()) ids.push_back(id);
  }
  return ids;
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

SpecialTokens::SpecialTokens(const Vocabulary& vocabulary, SpecialTokenOptions options)
    : index_(vocabulary, special_ids(vocabulary, options)), options_(std::move(options)) {}

// The longest token that `text` begins with.
SpecialTokens::Found SpecialTokens::longest_at(const Vocabulary& vocabulary, std::string_view text,
                                               bool parse_special) const {
  Found best;
  index_.for_each_prefix(vocabulary, text, [&](TokenId id, uint32_t bytes) {
    const bool wanted = parse_special || vocabulary.kind(id) == TokenKind::user_defined;
    if (wanted && best.bytes < bytes) best = {bytes, id};
  });
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
  return index_.memory_bytes() + options_.except.capacity() * sizeof(TokenId);
}

}  // namespace ridge
