#include "text/tokenizer_vocabulary.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "base/units.h"

namespace ridge {
namespace {

// Texts that end a generation in the vocabularies of the world. Converters often give them the wrong kind, so they
// count as control tokens whatever the file says; the golden tokens depend on it.
constexpr std::string_view kEndTexts[] = {
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|calls|>",
    "<|flush|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "[e~[",
    "<｜end▁of▁sentence｜>",
};

// An id given by the file. Some converters write −1, or 2^32 − 1, for "none".
Result<std::optional<TokenId>> special_id(const Metadata& metadata, std::string_view key, size_t vocabulary,
                                          std::optional<TokenId> otherwise) {
  const MetadataValue* value = metadata.find(key);
  if (value == nullptr) return otherwise;
  uint64_t id = 0;
  if (const auto* number = std::get_if<int64_t>(value)) {
    if (*number < 0) return std::optional<TokenId>();
    id = static_cast<uint64_t>(*number);
  } else if (const auto* unsigned_number = std::get_if<uint64_t>(value)) {
    id = *unsigned_number;
  } else {
    return bad_input(fmt::format("{}: {} is no integer; expected a token id", metadata.where, key));
  }
  if (id == 0xFFFFFFFF) return std::optional<TokenId>();
  if (id >= vocabulary) {
    return bad_input(fmt::format("{}: {} is {}, past the end of the vocabulary ({} tokens); convert the model again",
                                 metadata.where, key, format_count(id), format_count(vocabulary)));
  }
  return std::optional<TokenId>(static_cast<TokenId>(id));
}

Error length_error(const Metadata& metadata, std::string_view key, size_t length, size_t vocabulary) {
  return bad_input(fmt::format("{}: {} has {}, but there are {} tokens; convert the model again", metadata.where, key,
                               length == 1 ? "1 entry" : format_count(length) + " entries", format_count(vocabulary)));
}

}  // namespace

Result<Vocabulary> Vocabulary::take(Metadata& metadata, const VocabularyDefaults& defaults) {
  constexpr std::string_view key = "tokenizer.ggml.tokens";
  std::optional<MetadataArray> array = metadata.take_array(key);
  StringPool* texts = array ? std::get_if<StringPool>(&*array) : nullptr;
  if (texts == nullptr) {
    return bad_input(
        fmt::format("{}: {} is missing or no array of strings: the file has no vocabulary", metadata.where, key));
  }
  if (texts->size() == 0) {
    return bad_input(fmt::format("{}: {} is empty; expected at least one token", metadata.where, key));
  }
  if (texts->size() >= (size_t{1} << 31)) {
    return bad_input(
        fmt::format("{}: {} has {} entries; token ids end at 2^31", metadata.where, key, format_count(texts->size())));
  }
  Vocabulary v;
  v.texts_ = std::move(*texts);
  v.texts_.shrink_to_fit();
  RIDGE_TRY(v.take_kinds(metadata));
  v.index_texts();
  RIDGE_TRY(v.read_special_ids(metadata, defaults));
  return v;
}

Result<void> Vocabulary::take_kinds(Metadata& metadata) {
  constexpr std::string_view key = "tokenizer.ggml.token_type";
  if (metadata.find(key) == nullptr) {
    kinds_.assign(size(), TokenKind::normal);
    return {};
  }
  // Any integer width: converters write i32, others u32.
  std::optional<MetadataArray> array = metadata.take_array(key);
  auto take = [&](const auto& types) -> Result<void> {
    if (types.size() != size()) return length_error(metadata, key, types.size(), size());
    kinds_.reserve(size());
    for (auto type : types) {
      const bool known = type > 0 && type <= static_cast<int32_t>(TokenKind::byte);
      kinds_.push_back(known ? static_cast<TokenKind>(type) : TokenKind::undefined);
    }
    return {};
  };
  if (array && std::holds_alternative<std::vector<int32_t>>(*array))
    return take(std::get<std::vector<int32_t>>(*array));
  if (array && std::holds_alternative<std::vector<int64_t>>(*array))
    return take(std::get<std::vector<int64_t>>(*array));
  return bad_input(fmt::format("{}: {} is no array of integers", metadata.where, key));
}

void Vocabulary::index_texts() {
  index_ = HashIndex(size());
  for (size_t i = 0; i < size(); ++i) {
    const std::string_view text = texts_[i];
    longest_text_ = std::max(longest_text_, text.size());
    if (text.empty() || find(text)) continue;
    index_.insert(hash_bytes(text), static_cast<uint32_t>(i));
  }
}

std::optional<TokenId> Vocabulary::find(std::string_view text) const {
  if (text.empty() || text.size() > longest_text_) return std::nullopt;
  const auto id = index_.find(hash_bytes(text), [&](uint32_t i) { return texts_[i] == text; });
  if (!id) return std::nullopt;
  return static_cast<TokenId>(*id);
}

Result<void> Vocabulary::read_special_ids(const Metadata& metadata, const VocabularyDefaults& defaults) {
  auto inside = [this](std::optional<TokenId> id) { return id && has(*id) ? id : std::nullopt; };
  bos_ = RIDGE_TRY(special_id(metadata, "tokenizer.ggml.bos_token_id", size(), inside(defaults.bos)));
  eos_ = RIDGE_TRY(special_id(metadata, "tokenizer.ggml.eos_token_id", size(), inside(defaults.eos)));
  unknown_ = RIDGE_TRY(special_id(metadata, "tokenizer.ggml.unknown_token_id", size(), inside(defaults.unknown)));
  const auto end_of_turn = RIDGE_TRY(special_id(metadata, "tokenizer.ggml.eot_token_id", size(), std::nullopt));
  const auto end_of_message = RIDGE_TRY(special_id(metadata, "tokenizer.ggml.eom_token_id", size(), std::nullopt));
  mark_end_of_generation(end_of_turn, end_of_message);

  adds_bos_ = RIDGE_TRY(metadata.boolean("tokenizer.ggml.add_bos_token")).value_or(defaults.adds_bos);
  adds_eos_ = RIDGE_TRY(metadata.boolean("tokenizer.ggml.add_eos_token")).value_or(false);
  if (adds_bos_ && !bos_) {
    warn(fmt::format(
        "{}: prompts should begin with a BOS token, but tokenizer.ggml.bos_token_id names none: none is added",
        metadata.where));
  }
  if (adds_eos_ && !eos_) {
    warn(
        fmt::format("{}: texts should end with an EOS token, but tokenizer.ggml.eos_token_id names none: none is added",
                    metadata.where));
  }
  return {};
}

void Vocabulary::mark_end_of_generation(std::optional<TokenId> end_of_turn, std::optional<TokenId> end_of_message) {
  // Where <|return|> and <|call|> end a turn (gpt-oss), <|end|> only ends one of its messages.
  const bool has_messages = find("<|return|>") && find("<|call|>");
  for (std::string_view text : kEndTexts) {
    if (has_messages && text == "<|end|>") continue;
    if (const auto id = find(text)) {
      kinds_[static_cast<size_t>(*id)] = TokenKind::control;
      end_of_generation_.push_back(*id);
    }
  }
  for (const auto& id : {eos_, end_of_turn, end_of_message}) {
    if (id) end_of_generation_.push_back(*id);
  }
  std::sort(end_of_generation_.begin(), end_of_generation_.end());
  end_of_generation_.erase(std::unique(end_of_generation_.begin(), end_of_generation_.end()), end_of_generation_.end());
}

bool Vocabulary::is_end_of_generation(TokenId id) const {
  return std::binary_search(end_of_generation_.begin(), end_of_generation_.end(), id);
}

uint64_t Vocabulary::memory_bytes() const {
  return texts_.text_bytes() + texts_.size() * sizeof(uint32_t) + kinds_.capacity() * sizeof(TokenKind) +
         index_.memory_bytes() + end_of_generation_.capacity() * sizeof(TokenId);
}

Result<std::optional<std::vector<float>>> take_floats(Metadata& metadata, std::string_view key, size_t count) {
  if (metadata.find(key) == nullptr) return std::optional<std::vector<float>>();
  std::optional<MetadataArray> array = metadata.take_array(key);
  if (!array) return bad_input(fmt::format("{}: {} is no array of numbers", metadata.where, key));
  std::optional<std::vector<float>> floats = std::visit(
      [](auto& values) -> std::optional<std::vector<float>> {
        using Array = std::remove_cvref_t<decltype(values)>;
        if constexpr (std::is_same_v<Array, StringPool>) {
          return std::nullopt;
        } else if constexpr (std::is_same_v<Array, std::vector<float>>) {
          return std::move(values);
        } else {
          std::vector<float> converted;
          converted.reserve(values.size());
          for (auto value : values) converted.push_back(static_cast<float>(value));
          return converted;
        }
      },
      *array);
  if (!floats) return bad_input(fmt::format("{}: {} is no array of numbers", metadata.where, key));
  if (floats->size() != count) return length_error(metadata, key, floats->size(), count);
  return floats;
}

}  // namespace ridge
