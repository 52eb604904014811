#include "text/spm.h"

#include <fmt/format.h>

#include <bit>

#include "base/units.h"
#include "text/unicode.h"

namespace ridge {
namespace {

constexpr std::string_view kSpaceMark = "▁";  // U+2581, three bytes

// Maps floats to integers such that a higher score has a lower number: the bits of a positive float are ordered as it
// is, those of a negative one backwards. −0 counts as 0, as in a comparison; a NaN lies beyond an infinity, so that a
// broken file still has a defined order.
uint32_t order_of(float score) {
  const uint32_t bits = std::bit_cast<uint32_t>(score == 0.0f ? 0.0f : score);
  const uint32_t ascending = (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
  return ~ascending;
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> SpmTokenizer::take(Metadata& metadata) {
  Vocabulary vocabulary = RIDGE_TRY(Vocabulary::take(metadata, {.bos = 1, .eos = 2, .unknown = 0, .adds_bos = true}));
  constexpr std::string_view key = "tokenizer.ggml.scores";
  const auto scores = RIDGE_TRY(take_floats(metadata, key, vocabulary.size()));
  if (!scores) {
    return bad_input(fmt::format("{}: {} is missing; a SentencePiece vocabulary merges by them", metadata.where, key));
  }
  const bool prefix = RIDGE_TRY(metadata.boolean("tokenizer.ggml.add_space_prefix")).value_or(true);
  SpecialTokenOptions special = RIDGE_TRY(special_token_options(metadata, vocabulary));
  return std::unique_ptr<Tokenizer>(std::make_unique<SpmTokenizer>(std::move(vocabulary), std::move(special), *scores,
                                                                   prefix ? SpacePrefix::yes : SpacePrefix::no));
}

SpmTokenizer::SpmTokenizer(Vocabulary vocabulary, SpecialTokenOptions special, const std::vector<float>& scores,
                           SpacePrefix prefix)
    : VocabularyTokenizer(std::move(vocabulary), std::move(special)), adds_space_prefix_(prefix == SpacePrefix::yes) {
  order_.reserve(scores.size());
  for (float score : scores) order_.push_back(order_of(score));
  for (uint32_t byte = 0; byte < 256; ++byte) {
    std::optional<TokenId> id = this->vocabulary().find(fmt::format("<0x{:02X}>", byte));
    const char c = static_cast<char>(byte);
    if (!id) id = this->vocabulary().find({&c, 1});
    if (!id) id = this->vocabulary().unknown();
    byte_tokens_[byte] = id ? static_cast<uint32_t>(*id) : kNoToken;
  }
}

std::string SpmTokenizer::escape(std::string_view text) const {
  std::string escaped;
  escaped.reserve(text.size() + text.size() / 4 + kSpaceMark.size());
  if (adds_space_prefix_) escaped += kSpaceMark;
  for (char c : text) {
    if (c == ' ') {
      escaped += kSpaceMark;
    } else {
      escaped += c;
    }
  }
  return escaped;
}

void SpmTokenizer::encode_text(std::string_view raw, std::vector<TokenId>& out) const {
  const std::string escaped = escape(raw);
  const std::string_view text = escaped;
  auto token_of = [&](uint32_t begin, uint32_t bytes) {
    const auto id = vocabulary().find(text.substr(begin, bytes));
    return id ? static_cast<uint32_t>(*id) : kNoToken;
  };
  MergeScratch scratch;
  scratch.start(text.size());
  uint32_t previous = kNoToken;
  for (uint32_t pos = 0; pos < text.size();) {
    const uint32_t bytes = char_at(text, pos).bytes;
    scratch.symbols[pos] = {bytes, previous, token_of(pos, bytes)};
    previous = pos;
    pos += bytes;
  }
  merge_symbols(scratch, [&](uint32_t left, uint32_t right) -> MergeRule {
    const uint32_t id = token_of(left, scratch.symbols[left].bytes + scratch.symbols[right].bytes);
    return {id == kNoToken ? 0 : order_[id], id};
  });
  for (uint32_t pos = 0; pos < text.size(); pos += scratch.symbols[pos].bytes) {
    const MergeSymbol& symbol = scratch.symbols[pos];
    if (symbol.id != kNoToken) {
      out.push_back(static_cast<TokenId>(symbol.id));
      continue;
    }
    for (char c : text.substr(pos, symbol.bytes)) {
      const uint32_t id = byte_tokens_[static_cast<uint8_t>(c)];
      if (id != kNoToken) out.push_back(static_cast<TokenId>(id));
    }
  }
}

void SpmTokenizer::append_normal(std::string_view stored, std::string& out) const { append_with_spaces(stored, out); }

std::string SpmTokenizer::description() const {
  return fmt::format("SentencePiece BPE, {} tokens", format_count(size()));
}

uint64_t SpmTokenizer::memory_bytes() const {
  return sizeof(*this) + base_memory_bytes() + order_.capacity() * sizeof(uint32_t);
}

}  // namespace ridge
