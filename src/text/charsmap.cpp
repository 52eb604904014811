#include "text/charsmap.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "base/units.h"

namespace ridge {
namespace {

// nmt_nfkc's longest has 33 bytes. The limit keeps a hostile file from turning each character into megabytes.
constexpr size_t kLongestReplacement = 255;

constexpr uint32_t offset_of(uint32_t unit) { return (unit >> 10) << ((unit & 0x200) >> 6); }
constexpr uint32_t label_of(uint32_t unit) { return unit & 0x800000FF; }
constexpr bool rule_ends_at(uint32_t unit) { return (unit & 0x100) != 0; }

}  // namespace

Result<Charsmap> Charsmap::from_bytes(std::string_view bytes, std::string_view where) {
  Charsmap map;
  if (bytes.empty()) return map;
  auto damaged = [&](std::string_view problem) {
    return bad_input(fmt::format("{}: the charsmap {}: the file is damaged; fetch it again", where, problem));
  };
  uint32_t trie_bytes = 0;
  if (bytes.size() < sizeof trie_bytes) return damaged("is cut short");
  static_assert(std::endian::native == std::endian::little);
  std::memcpy(&trie_bytes, bytes.data(), sizeof trie_bytes);
  bytes.remove_prefix(sizeof trie_bytes);
  if (trie_bytes == 0 || trie_bytes % sizeof(uint32_t) != 0 || trie_bytes > bytes.size()) {
    return damaged(
        fmt::format("claims a trie of {} bytes in {}", format_count(trie_bytes), format_count(bytes.size())));
  }
  map.units_.resize(trie_bytes / sizeof(uint32_t));
  std::memcpy(map.units_.data(), bytes.data(), trie_bytes);
  map.replacements_ = bytes.substr(trie_bytes);
  if (map.replacements_.empty() || map.replacements_.back() != '\0') return damaged("does not end its replacements");
  for (size_t begin = 0; begin < map.replacements_.size();) {
    const size_t end = map.replacements_.find('\0', begin);
    if (end - begin > kLongestReplacement) return damaged("has a replacement of absurd length");
    begin = end + 1;
  }
  return map;
}

Charsmap::Rule Charsmap::longest(std::string_view text, size_t pos) const {
  Rule best;
  if (units_.empty()) return best;
  uint32_t node = offset_of(units_[0]);
  for (size_t at = pos; at < text.size(); ++at) {
    const auto byte = static_cast<uint8_t>(text[at]);
    node ^= byte;
    if (node >= units_.size()) return best;
    const uint32_t unit = units_[node];
    if (label_of(unit) != byte) return best;
    node ^= offset_of(unit);
    if (!rule_ends_at(unit)) continue;
    if (node >= units_.size()) return best;
    const uint32_t value = units_[node] & 0x7FFFFFFF;
    if (value >= replacements_.size()) continue;
    best = {at + 1 - pos, std::string_view(replacements_.data() + value)};
  }
  return best;
}

}  // namespace ridge
