#include "text/unigram.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/units.h"
#include "format/quote.h"
#include "text/bpe_merge.h"
#include "text/unicode.h"

namespace ridge {
namespace {

constexpr std::string_view kSpaceMark = "▁";  // U+2581, three bytes
constexpr float kUnknownPenalty = 10;

bool matches_text(TokenKind kind) { return kind == TokenKind::normal || kind == TokenKind::user_defined; }

std::vector<TokenId> ids_that_match(const Vocabulary& vocabulary) {
  std::vector<TokenId> ids;
  for (size_t i = 0; i < vocabulary.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    if (matches_text(vocabulary.kind(id)) && !vocabulary.text(id).empty()) ids.push_back(id);
  }
  return ids;
}

// An array of bytes in the metadata: whole numbers of any width.
Result<std::string> take_bytes(Metadata& metadata, std::string_view key) {
  std::string bytes;
  if (metadata.find(key) == nullptr) return bytes;
  const std::optional<MetadataArray> array = metadata.take_array(key);
  const auto* numbers = array ? std::get_if<std::vector<int32_t>>(&*array) : nullptr;
  if (numbers == nullptr) return bad_input(fmt::format("{}: {} is no array of bytes", metadata.where, key));
  bytes.reserve(numbers->size());
  for (int32_t n : *numbers) bytes.push_back(static_cast<char>(n));  // int8 and uint8 are both in use
  return bytes;
}

Result<void> check_pieces(const Metadata& metadata, const Vocabulary& vocabulary, std::span<const float> scores) {
  for (size_t i = 0; i < vocabulary.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    if (!matches_text(vocabulary.kind(id))) continue;
    if (!std::isfinite(scores[i])) {
      return bad_input(fmt::format("{}: piece {} ({}) has a score that is no number; convert the model again",
                                   metadata.where, i, in_quotes(vocabulary.text(id))));
    }
    const std::optional<TokenId> first = vocabulary.find(vocabulary.text(id));
    if (first && *first != id) {
      return bad_input(fmt::format("{}: pieces {} and {} are both {}; convert the model again", metadata.where, *first,
                                   id, in_quotes(vocabulary.text(id))));
    }
  }
  if (!vocabulary.unknown()) {
    return bad_input(
        fmt::format("{}: no token stands for what is unknown (tokenizer.ggml.unknown_token_id); convert "
                    "the model again",
                    metadata.where));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> UnigramTokenizer::take(Metadata& metadata) {
  Vocabulary vocabulary = RIDGE_TRY(Vocabulary::take(metadata, {.eos = 1, .unknown = 2}));
  constexpr std::string_view key = "tokenizer.ggml.scores";
  std::optional<std::vector<float>> scores = RIDGE_TRY(take_floats(metadata, key, vocabulary.size()));
  if (!scores) {
    return bad_input(fmt::format("{}: {} is missing; a unigram vocabulary is cut by them", metadata.where, key));
  }
  RIDGE_TRY(check_pieces(metadata, vocabulary, *scores));
  Rules rules;
  const std::string charsmap = RIDGE_TRY(take_bytes(metadata, "tokenizer.ggml.precompiled_charsmap"));
  rules.charsmap = RIDGE_TRY(Charsmap::from_bytes(charsmap, metadata.where));
  rules.white_space = {
      .dummy_prefix = RIDGE_TRY(metadata.boolean("tokenizer.ggml.add_space_prefix")).value_or(true),
      .remove_extra = RIDGE_TRY(metadata.boolean("tokenizer.ggml.remove_extra_whitespaces")).value_or(true)};
  rules.byte_fallback = RIDGE_TRY(metadata.boolean("tokenizer.ridge.byte_fallback")).value_or(false);
  return std::unique_ptr<Tokenizer>(
      std::make_unique<UnigramTokenizer>(std::move(vocabulary), std::move(*scores), std::move(rules)));
}

UnigramTokenizer::UnigramTokenizer(Vocabulary vocabulary, std::vector<float> scores, Rules rules)
    : VocabularyTokenizer(std::move(vocabulary), {.leaves_user_defined = true}),
      scores_(std::move(scores)),
      rules_(std::move(rules)),
      pieces_(this->vocabulary(), ids_that_match(this->vocabulary())) {
  RIDGE_CHECK(scores_.size() == this->vocabulary().size(), "one score per token");
  float lowest = std::numeric_limits<float>::max(), highest = std::numeric_limits<float>::lowest();
  for (size_t i = 0; i < scores_.size(); ++i) {
    const TokenKind kind = this->vocabulary().kind(static_cast<TokenId>(i));
    has_user_defined_ |= kind == TokenKind::user_defined;
    if (kind != TokenKind::normal) continue;
    lowest = std::min(lowest, scores_[i]);
    highest = std::max(highest, scores_[i]);
  }
  if (lowest > highest) lowest = highest = 0;  // a vocabulary without a normal piece
  unknown_score_ = lowest - kUnknownPenalty;
  highest_score_ = highest;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const auto id = rules_.byte_fallback ? this->vocabulary().find(fmt::format("<0x{:02X}>", byte)) : std::nullopt;
    byte_tokens_[byte] = id ? static_cast<uint32_t>(*id) : kNoToken;
  }
}

// What stands for the text at `pos`, and how many bytes of it: a user-defined piece as it is, a rule's replacement, or
// the next character.
Charsmap::Rule UnigramTokenizer::next_replacement(std::string_view text, size_t pos) const {
  if (has_user_defined_) {
    size_t longest = 0;
    pieces_.for_each_prefix(vocabulary(), text.substr(pos), [&](TokenId id, uint32_t bytes) {
      if (vocabulary().kind(id) == TokenKind::user_defined) longest = bytes;
    });
    if (longest > 0) return {longest, text.substr(pos, longest)};
  }
  if (const Charsmap::Rule rule = rules_.charsmap.longest(text, pos); rule.bytes > 0) return rule;
  const Char c = char_at(text, pos);
  if (c.bytes == 1 && c.value >= 0x80) return {1, "\xEF\xBF\xBD"};  // no character: U+FFFD
  return {c.bytes, text.substr(pos, c.bytes)};
}

std::string UnigramTokenizer::normalise(std::string_view text) const {
  const WhiteSpace& white_space = rules_.white_space;
  std::string out;
  size_t pos = 0;
  if (white_space.remove_extra) {
    while (pos < text.size()) {
      const Charsmap::Rule next = next_replacement(text, pos);
      if (next.replacement != " ") break;
      pos += next.bytes;
    }
  }
  if (pos == text.size()) return out;
  out.reserve(text.size() + text.size() / 4 + kSpaceMark.size());
  if (white_space.dummy_prefix) out += kSpaceMark;

  bool after_space = white_space.remove_extra;
  while (pos < text.size()) {
    const Charsmap::Rule next = next_replacement(text, pos);
    pos += next.bytes;
    std::string_view added = next.replacement;
    if (after_space) added.remove_prefix(std::min(added.find_first_not_of(' '), added.size()));
    if (added.empty()) continue;
    for (char c : added) {
      if (c == ' ') {
        out += kSpaceMark;
      } else {
        out += c;
      }
    }
    after_space = white_space.remove_extra && added.back() == ' ';
  }
  if (white_space.remove_extra) {
    while (out.ends_with(kSpaceMark)) out.resize(out.size() - kSpaceMark.size());
  }
  return out;
}

struct UnigramTokenizer::Edge {
  float score = 0;
  uint32_t start = kNoToken;  // where the piece that ends here begins; kNoToken: not reached yet
  TokenId id = 0;
};

// Tries every piece that begins at `start`.
void UnigramTokenizer::relax_from(std::string_view text, uint32_t start, std::span<Edge> best) const {
  const float till_here = best[start].score;
  const uint32_t character = char_at(text, start).bytes;
  bool has_character = false;
  auto reach = [&](uint32_t bytes, float score, TokenId id) {
    Edge& end = best[start + bytes];
    const float candidate = score + till_here;
    if (end.start == kNoToken || candidate > end.score) end = {candidate, start, id};
  };
  pieces_.for_each_prefix(vocabulary(), text.substr(start), [&](TokenId id, uint32_t bytes) {
    has_character |= bytes == character;
    const bool user_defined = vocabulary().kind(id) == TokenKind::user_defined;
    // A user-defined piece beats whatever its bytes could be cut into.
    const float score = user_defined ? static_cast<float>(static_cast<float>(bytes) * highest_score_ - 0.1)
                                     : scores_[static_cast<size_t>(id)];
    reach(bytes, score, id);
  });
  if (!has_character) reach(character, unknown_score_, *vocabulary().unknown());
}

void UnigramTokenizer::append_unknown(std::string_view text, bool after_unknown, std::vector<TokenId>& out) const {
  const bool has_bytes =
      std::all_of(text.begin(), text.end(), [&](char c) { return byte_tokens_[static_cast<uint8_t>(c)] != kNoToken; });
  if (has_bytes) {
    for (char c : text) out.push_back(static_cast<TokenId>(byte_tokens_[static_cast<uint8_t>(c)]));
  } else if (!after_unknown) {
    out.push_back(*vocabulary().unknown());  // one for the whole stretch
  }
}

void UnigramTokenizer::encode_text(std::string_view raw, std::vector<TokenId>& out) const {
  const std::string normalised = normalise(raw);
  const std::string_view text = normalised;
  RIDGE_CHECK(text.size() < kNoToken, "a normalised text is below 4 GiB: positions are 32 bits wide");
  std::vector<Edge> best(text.size() + 1);
  for (uint32_t start = 0; start < text.size(); start += char_at(text, start).bytes) relax_from(text, start, best);

  std::vector<uint32_t> ends;  // of the pieces, last first
  for (auto at = static_cast<uint32_t>(text.size()); at > 0; at = best[at].start) ends.push_back(at);
  bool after_unknown = false;
  for (auto end = ends.rbegin(); end != ends.rend(); ++end) {
    const Edge& edge = best[*end];
    const bool unknown = edge.id == *vocabulary().unknown();
    if (unknown) {
      append_unknown(text.substr(edge.start, *end - edge.start), after_unknown, out);
    } else {
      out.push_back(edge.id);
    }
    after_unknown = unknown;
  }
}

void UnigramTokenizer::append_normal(std::string_view stored, std::string& out) const {
  append_with_spaces(stored, out);
}

std::string UnigramTokenizer::description() const {
  return fmt::format("SentencePiece unigram, {} tokens", format_count(size()));
}

uint64_t UnigramTokenizer::memory_bytes() const {
  return sizeof(*this) + base_memory_bytes() + scores_.capacity() * sizeof(float) + rules_.charsmap.memory_bytes() +
         pieces_.memory_bytes();
}

}  // namespace ridge
