// The merge loop that byte-level BPE and SentencePiece BPE share: neighbouring symbols are joined, best pair first, of
// equals the leftmost, until no pair may be joined. O(n log n) with a heap; a text of one megabyte-long word is no
// worse.
//
// Not for: deciding which pairs may join and how good they are (the callers' tables).
//
//   MergeScratch scratch;
//   scratch.start(word.size());
//   scratch.symbols[pos] = {.bytes = 1, .previous = …, .id = …};
//   merge_symbols(scratch, [&](uint32_t left, uint32_t right) -> MergeRule { … });
//   for (uint32_t pos = 0; pos < word.size(); pos += scratch.symbols[pos].bytes)
//   out.push_back(scratch.symbols[pos].id);
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

namespace ridge {

inline constexpr uint32_t kNoToken = 0xFFFFFFFF;

// A stretch of the text. Symbols are indexed by the byte they begin at, so the next one is at pos + bytes.
struct MergeSymbol {
  uint32_t bytes = 0;            // 0: no symbol begins here
  uint32_t previous = kNoToken;  // where the one before begins; kNoToken for the first
  uint32_t id = kNoToken;        // its token, if it is one
};

struct MergeRule {
  uint32_t order = 0;      // lower joins earlier
  uint32_t id = kNoToken;  // the token the pair becomes; kNoToken: the pair does not join
};

// Buffers to be used again for the next word.
struct MergeScratch {
  struct Candidate {
    uint64_t order;       // rule order, then position: the smallest is next
    uint32_t pair_bytes;  // of both symbols; no longer true once either has joined another
    uint32_t id;
    bool operator>(const Candidate& other) const { return order > other.order; }
  };
  std::vector<MergeSymbol> symbols;
  std::vector<Candidate> heap;

  void start(size_t text_bytes) {
    symbols.assign(text_bytes, {});
    heap.clear();
  }
};

// `rule(left, right)` is asked with the positions of two neighbours.
template <class Rule>
void merge_symbols(MergeScratch& scratch, Rule rule) {
  auto& symbols = scratch.symbols;
  auto& heap = scratch.heap;
  const auto end = static_cast<uint32_t>(symbols.size());
  auto append = [&](uint32_t left, uint32_t right) {
    const MergeRule merge = rule(left, right);
    if (merge.id == kNoToken) return false;
    heap.push_back(
        {static_cast<uint64_t>(merge.order) << 32 | left, symbols[left].bytes + symbols[right].bytes, merge.id});
    return true;
  };
  auto push = [&](uint32_t left, uint32_t right) {
    if (append(left, right)) std::push_heap(heap.begin(), heap.end(), std::greater<>());
  };

  for (uint32_t left = 0; left < end;) {
    const uint32_t right = left + symbols[left].bytes;
    if (right < end) append(left, right);
    left = right;
  }
  std::make_heap(heap.begin(), heap.end(), std::greater<>());

  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const MergeScratch::Candidate best = heap.back();
    heap.pop_back();
    const auto left = static_cast<uint32_t>(best.order);
    MergeSymbol& symbol = symbols[left];
    const uint32_t right = left + symbol.bytes;
    // Outdated if the left symbol is gone, or either has grown: growing takes in a whole neighbour, so a pair that has
    // changed never has the old length.
    if (symbol.bytes == 0 || right >= end || symbol.bytes + symbols[right].bytes != best.pair_bytes) continue;
    symbol.bytes = best.pair_bytes;
    symbol.id = best.id;
    symbols[right].bytes = 0;
    const uint32_t next = left + symbol.bytes;
    if (next < end) {
      symbols[next].previous = left;
      push(left, next);
    }
    if (symbol.previous != kNoToken) push(symbol.previous, left);
  }
}

}  // namespace ridge
