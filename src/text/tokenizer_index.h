// A hash table of 32-bit numbers that belong to keys stored elsewhere: 4 bytes a slot, no keys, no pointers. A
// vocabulary of 262,144 texts costs 1.5 MiB this way where a map of strings costs about 20 MiB.
//
// Not for: removing, growing past the count given, hostile keys (they cost time, not correctness).
//
//   HashIndex index(texts.size());
//   index.insert(hash_bytes(texts[7]), 7);
//   auto id = index.find(hash_bytes("the"), [&](uint32_t i) { return texts[i] == "the"; });
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "base/check.h"

namespace ridge {

// Multiplies to 128 bits and folds the halves: every bit of the result depends on every bit of both.
inline uint64_t mix_bits(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

inline uint64_t hash_bytes(std::string_view text) {
  constexpr uint64_t kOdd = 0x9E3779B97F4A7C15;  // 2^64 / golden ratio
  uint64_t hash = text.size() * kOdd;
  while (text.size() >= 8) {
    uint64_t chunk;
    std::memcpy(&chunk, text.data(), 8);
    hash = mix_bits(hash ^ chunk, kOdd);
    text.remove_prefix(8);
  }
  uint64_t tail = 0;
  if (!text.empty()) std::memcpy(&tail, text.data(), text.size());
  return mix_bits(mix_bits(hash ^ tail, kOdd), 0xD6E8FEB86659FD93);
}

inline uint64_t hash_pair(uint32_t a, uint32_t b) {
  return mix_bits((static_cast<uint64_t>(a) << 32 | b) ^ 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93);
}

class HashIndex {
 public:
  // For at most `count` numbers, each below `count`.
  explicit HashIndex(size_t count = 0)
      : slots_(count + count / 2 + 1), number_bits_(static_cast<int>(std::bit_width(count))) {
    RIDGE_CHECK(count < (size_t{1} << 31), "an index holds fewer than 2^31 numbers");
  }

  // The number inserted with this hash for which `is_it(number)` holds.
  template <class IsIt>
  std::optional<uint32_t> find(uint64_t hash, IsIt is_it) const {
    const uint32_t mark = mark_of(hash);
    for (size_t i = home(hash); slots_[i] != 0; i = next(i)) {
      if (((slots_[i] ^ mark) >> number_bits_) != 0) continue;
      const uint32_t number = (slots_[i] ^ mark) - 1;
      if (is_it(number)) return number;
    }
    return std::nullopt;
  }

  void insert(uint64_t hash, uint32_t number) {
    size_t i = home(hash);
    while (slots_[i] != 0) i = next(i);
    slots_[i] = mark_of(hash) | (number + 1);
  }

  uint64_t memory_bytes() const { return slots_.capacity() * sizeof(uint32_t); }

 private:
  size_t home(uint64_t hash) const { return static_cast<size_t>((hash >> 32) * slots_.size() >> 32); }
  size_t next(size_t i) const { return i + 1 == slots_.size() ? 0 : i + 1; }
  // The bits of a slot that the number does not need hold bits of the hash: most misses end without a look at the key.
  uint32_t mark_of(uint64_t hash) const { return static_cast<uint32_t>(hash) >> number_bits_ << number_bits_; }

  std::vector<uint32_t> slots_;  // 0: empty; else mark | number + 1
  int number_bits_;
};

}  // namespace ridge
