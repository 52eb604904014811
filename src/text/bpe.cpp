#include "text/bpe.h"

#include <fmt/format.h>

#include "base/log.h"
#include "base/units.h"
#include "format/quote.h"
#include "text/nfc.h"
#include "text/unicode.h"

namespace ridge {
namespace {

// GPT-2's map: printable Latin-1 bytes stand for themselves; the other 68, in order, are U+0100 and following.
constexpr bool stands_for_itself(uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
}

constexpr std::array<uint16_t, 256> kVisible = [] {
  std::array<uint16_t, 256> visible{};
  uint16_t next = 256;
  for (uint32_t byte = 0; byte < 256; ++byte)
    visible[byte] = stands_for_itself(byte) ? static_cast<uint16_t>(byte) : next++;
  return visible;
}();

constexpr std::array<int16_t, 256 + 68> kByteOf = [] {
  std::array<int16_t, 256 + 68> bytes{};
  for (auto& b : bytes) b = -1;
  for (uint32_t byte = 0; byte < 256; ++byte) bytes[kVisible[byte]] = static_cast<int16_t>(byte);
  return bytes;
}();

}  // namespace

std::string bytes_to_visible(std::string_view bytes) {
  std::string visible;
  visible.reserve(2 * bytes.size());
  for (char c : bytes) append_utf8(kVisible[static_cast<uint8_t>(c)], visible);
  return visible;
}

void append_visible_to_bytes(std::string_view visible, std::string& out) {
  for (size_t pos = 0; pos < visible.size();) {
    const Char c = char_at(visible, pos);
    const int byte = c.value < kByteOf.size() ? kByteOf[c.value] : -1;
    if (byte >= 0) {
      out.push_back(static_cast<char>(byte));
    } else {
      out.append(visible.substr(pos, c.bytes));
    }
    pos += c.bytes;
  }
}

MergeTable::MergeTable(const Vocabulary& vocabulary, const StringPool& merges) : index_(merges.size()) {
  merges_.reserve(merges.size());
  std::string whole;
  for (size_t i = 0; i < merges.size(); ++i) {
    const std::string_view line = merges[i];
    const size_t space = line.find(' ', 1);  // a token may itself begin with a space
    if (space == line.npos) continue;
    const auto left = vocabulary.find(line.substr(0, space));
    const auto right = vocabulary.find(line.substr(space + 1));
    if (!left || !right) continue;
    whole.assign(line.substr(0, space)).append(line.substr(space + 1));
    const auto result = vocabulary.find(whole);
    if (!result) continue;
    const Merge merge = {static_cast<uint32_t>(*left), static_cast<uint32_t>(*right), static_cast<uint32_t>(*result)};
    if (rule(merge.left, merge.right).id != kNoToken) continue;
    index_.insert(hash_pair(merge.left, merge.right), static_cast<uint32_t>(merges_.size()));
    merges_.push_back(merge);
  }
}

MergeRule MergeTable::rule(uint32_t left, uint32_t right) const {
  const auto rank = index_.find(hash_pair(left, right),
                                [&](uint32_t i) { return merges_[i].left == left && merges_[i].right == right; });
  if (!rank) return {};
  return {*rank, merges_[*rank].result};
}

Result<std::unique_ptr<Tokenizer>> BpeTokenizer::take(Metadata& metadata) {
  const auto name = RIDGE_TRY(metadata.string("tokenizer.ggml.pre"));
  if (!name || name->empty()) {
    warn(fmt::format(
        "{}: tokenizer.ggml.pre is missing: words are cut by the 'default' rules, which may not be those the "
        "model was trained with",
        metadata.where));
  }
  const Pretokenizer* rules = find_pretokenizer(!name || name->empty() ? "default" : *name);
  if (rules == nullptr) {
    return bad_input(fmt::format("{}: unknown pre-tokenizer {} (tokenizer.ggml.pre); known are {}", metadata.where,
                                 in_quotes(*name), pretokenizer_names()));
  }
  metadata.erase("tokenizer.ggml.scores");  // some converters write them; BPE has no use for them
  Vocabulary vocabulary = RIDGE_TRY(Vocabulary::take(metadata, {.adds_bos = rules->adds_bos}));

  constexpr std::string_view key = "tokenizer.ggml.merges";
  const std::optional<MetadataArray> array = metadata.take_array(key);
  const auto* merges = array ? std::get_if<StringPool>(&*array) : nullptr;
  if (merges == nullptr) {
    return bad_input(
        fmt::format("{}: {} is missing or no array of strings; byte-level BPE needs it", metadata.where, key));
  }
  if (merges->size() >= (size_t{1} << 31)) {
    return bad_input(fmt::format("{}: {} has {} entries; at most 2^31 are possible", metadata.where, key,
                                 format_count(merges->size())));
  }
  SpecialTokenOptions special = RIDGE_TRY(special_token_options(metadata, vocabulary));
  Rules how{.words = rules};
  how.ignore_merges = RIDGE_TRY(metadata.boolean("tokenizer.ridge.ignore_merges")).value_or(rules->ignore_merges);
  how.to_nfc = RIDGE_TRY(metadata.string("tokenizer.ridge.normalizer")).value_or("") == "NFC";
  return std::unique_ptr<Tokenizer>(
      std::make_unique<BpeTokenizer>(std::move(vocabulary), std::move(special), *merges, how));
}

BpeTokenizer::BpeTokenizer(Vocabulary vocabulary, SpecialTokenOptions special, const StringPool& merges,
                           const Rules& rules)
    : VocabularyTokenizer(std::move(vocabulary), std::move(special)),
      rules_(rules),
      merges_(this->vocabulary(), merges) {
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    const auto id = this->vocabulary().find(bytes_to_visible({&c, 1}));
    byte_tokens_[byte] = id ? static_cast<uint32_t>(*id) : kNoToken;
  }
}

void BpeTokenizer::encode_text(std::string_view text, std::vector<TokenId>& out) const {
  MergeScratch scratch;
  const std::string normal = rules_.to_nfc ? to_nfc(text) : std::string();
  rules_.words->split(rules_.to_nfc ? std::string_view(normal) : text,
                      [&](std::string_view word) { encode_word(word, scratch, out); });
}

void BpeTokenizer::encode_word(std::string_view word, MergeScratch& scratch, std::vector<TokenId>& out) const {
  if (rules_.ignore_merges && word.size() <= vocabulary().longest_text()) {
    if (const auto id = vocabulary().find(bytes_to_visible(word))) {
      out.push_back(*id);
      return;
    }
  }
  scratch.start(word.size());
  for (uint32_t pos = 0; pos < word.size(); ++pos) {
    scratch.symbols[pos] = {1, pos - 1, byte_tokens_[static_cast<uint8_t>(word[pos])]};  // 0 − 1 is kNoToken
  }
  static_assert(uint32_t{0} - 1 == kNoToken);
  merge_symbols(scratch, [&](uint32_t left, uint32_t right) {
    return merges_.rule(scratch.symbols[left].id, scratch.symbols[right].id);
  });
  for (uint32_t pos = 0; pos < word.size(); pos += scratch.symbols[pos].bytes) {
    const uint32_t id = scratch.symbols[pos].id;
    // A byte the vocabulary lacks is lost, as in the reference. Its unknown token would do harm: in SmolLM2, which
    // lacks 21 bytes, that is <|endoftext|>.
    if (id != kNoToken) out.push_back(static_cast<TokenId>(id));
  }
}

void BpeTokenizer::append_normal(std::string_view stored, std::string& out) const {
  append_visible_to_bytes(stored, out);
}

std::string BpeTokenizer::description() const {
  return fmt::format("BPE ({}), {} tokens", rules_.words->name, format_count(size()));
}

uint64_t BpeTokenizer::memory_bytes() const { return sizeof(*this) + base_memory_bytes() + merges_.memory_bytes(); }

}  // namespace ridge
