#include "format/tokenizer_json.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "base/units.h"
#include "format/base64.h"
#include "format/quote.h"
#include "format/tokenizer_json_parts.h"
#include "format/whole_file.h"

namespace ridge {
namespace {

using nlohmann::json;

constexpr uint64_t kMostFileBytes = 64 * kMiB;  // Gemma 3's, the largest known, has 33 MB
constexpr int32_t kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6;

// The expressions that Split pre-tokenizers use, and what GGUF files call the whole. To add one: its row here, and its
// matcher in text/pretokenize.cpp.
struct KnownSplit {
  std::string_view expression, name;
};
constexpr KnownSplit kSplits[] = {
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     "qwen2"},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     "llama3"},
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
     R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
     R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     "gpt-4o"},
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
     R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
     R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     "tekken"},
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", "gpt-2"},
};

const json kAbsent;  // null

const json& at(const json& object, const char* key) {
  if (!object.is_object()) return kAbsent;
  const auto found = object.find(key);
  return found == object.end() ? kAbsent : *found;
}

std::string_view text_at(const json& object, const char* key) {
  const json& value = at(object, key);
  return value.is_string() ? std::string_view(value.get_ref<const std::string&>()) : std::string_view();
}

// A missing flag, and null, is `otherwise`.
bool flag_at(const json& object, const char* key, bool otherwise) {
  const json& value = at(object, key);
  return value.is_boolean() ? value.get<bool>() : otherwise;
}

// The steps of a normalizer, pre-tokenizer or post-processor: none for null, the parts of a Sequence, or itself.
std::vector<const json*> steps_of(const json& value, const char* parts) {
  std::vector<const json*> steps;
  if (value.is_null()) return steps;
  if (text_at(value, "type") != "Sequence") return {&value};
  for (const json& step : at(value, parts)) steps.push_back(&step);
  return steps;
}

class TokenizerJson {
 public:
  TokenizerJson(JsonParts parts, const std::string& name) : parts_(std::move(parts)), name_(name) {}
  Result<Metadata> read();

 private:
  struct Entry {
    std::string_view text;
    int32_t kind = kUnused;
    float score = 0;
  };

  Result<void> read_bpe();
  Result<void> read_unigram();
  Result<void> read_vocabulary();
  Result<void> add_tokens();
  Result<void> place(int64_t id, std::string_view text, int32_t kind, float score);
  Result<void> read_bpe_normalizer();
  Result<std::string> pretokenizer_name() const;
  Result<void> check_byte_level(const json& step) const;
  Result<std::string> name_of_split(const json& step) const;
  Result<void> read_unigram_normalizer();
  Result<void> read_unigram_pretokenizer();
  Result<void> read_post_processor();
  Result<int64_t> id_of_template_token(const json& step) const;
  void put_vocabulary();

  const json& model() const { return at(parts_.rest, "model"); }
  Error unsupported(std::string_view where, const json& value) const {
    const std::string_view type = text_at(value, "type");
    return bad_input(fmt::format("{}: {} of type {} is not supported; give the tokenizer.json of a Qwen or T5 model",
                                 name_, where, ridge::quoted(type.empty() ? "none" : type)));
  }
  Error refused(std::string_view problem) const {
    return bad_input(fmt::format("{}: {}; give the tokenizer.json of a Qwen or T5 model", name_, problem));
  }
  Error damaged(std::string_view problem) const {
    return bad_input(fmt::format("{}: {}: the file is damaged; fetch it again", name_, problem));
  }

  JsonParts parts_;
  const std::string& name_;
  std::vector<Entry> tokens_;  // by id
  Metadata out_;
};

Result<void> TokenizerJson::place(int64_t id, std::string_view text, int32_t kind, float score) {
  // A few files leave ids out; one that leaves out most of them is made to cost memory.
  const size_t most = 2 * (parts_.texts.size() + at(parts_.rest, "added_tokens").size()) + 1024;
  if (id < 0 || static_cast<uint64_t>(id) >= most) {
    return damaged(fmt::format("token {} has id {}, expected 0 to {}", ridge::quoted(text), id, most - 1));
  }
  const auto index = static_cast<size_t>(id);
  if (index >= tokens_.size()) tokens_.resize(index + 1);
  Entry& entry = tokens_[index];
  if (!entry.text.empty() && entry.text != text) {
    return damaged(fmt::format("tokens {} and {} both have id {}", ridge::quoted(entry.text), ridge::quoted(text), id));
  }
  entry = {text, kind, score};
  return {};
}

Result<void> TokenizerJson::read_vocabulary() {
  const bool has_scores = !parts_.scores.empty();
  for (size_t i = 0; i < parts_.texts.size(); ++i) {
    const int64_t id = has_scores ? static_cast<int64_t>(i) : parts_.ids[i];
    const float score = has_scores ? static_cast<float>(parts_.scores[i]) : 0.0f;
    if (!std::isfinite(score)) return damaged(fmt::format("token {} has a score that is no number", i));
    RIDGE_TRY(place(id, parts_.texts[i], kNormal, score));
  }
  return {};
}

Result<void> TokenizerJson::add_tokens() {
  const json& added = at(parts_.rest, "added_tokens");
  if (!added.is_null() && !added.is_array()) return damaged("added_tokens is no array");
  for (const json& token : added) {
    const std::string_view text = text_at(token, "content");
    const json& id = at(token, "id");
    if (text.empty() || !id.is_number_integer()) return damaged("an added token has no id or no content");
    const bool special = flag_at(token, "special", false);
    const bool strips = flag_at(token, "lstrip", false) || flag_at(token, "rstrip", false);
    if (flag_at(token, "single_word", false) || (strips && !special)) {
      return refused(
          fmt::format("the added token {} matches by the text around it, which is not supported", ridge::quoted(text)));
    }
    const int64_t number = id.get<int64_t>();
    const bool inside = number >= 0 && static_cast<uint64_t>(number) < tokens_.size();
    const float score = inside ? tokens_[static_cast<size_t>(number)].score : 0.0f;
    RIDGE_TRY(place(number, text, special ? kControl : kUserDefined, score));
  }
  return {};
}

void TokenizerJson::put_vocabulary() {
  StringPool texts;
  std::vector<int32_t> kinds;
  std::vector<float> scores;
  size_t bytes = 0;
  for (const Entry& entry : tokens_) bytes += entry.text.size();
  texts.reserve(tokens_.size(), bytes);
  for (const Entry& entry : tokens_) {
    texts.push_back(entry.text);
    kinds.push_back(entry.kind);
    scores.push_back(entry.score);
  }
  auto& entries = out_.entries();
  entries["tokenizer.ggml.tokens"] = MetadataArray(std::move(texts));
  entries["tokenizer.ggml.token_type"] = MetadataArray(std::move(kinds));
  if (!parts_.scores.empty()) entries["tokenizer.ggml.scores"] = MetadataArray(std::move(scores));
}

// ---- Byte-level BPE -------------------------------------------------------------------------------------------------

Result<void> TokenizerJson::read_bpe() {
  if (!parts_.scores.empty()) return damaged("a BPE vocabulary with scores");
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!text_at(model(), key).empty()) {
      return refused(fmt::format("model.{} is {}, which is not supported", key, ridge::quoted(text_at(model(), key))));
    }
  }
  if (flag_at(model(), "byte_fallback", false)) {
    return refused("a SentencePiece vocabulary as BPE (byte_fallback), which is not supported in this form");
  }
  if (at(model(), "dropout").is_number() && at(model(), "dropout").get<double>() != 0) {
    return refused("model.dropout leaves merges out at random, which is not supported");
  }
  RIDGE_TRY(read_bpe_normalizer());
  auto& entries = out_.entries();
  entries["tokenizer.ggml.pre"] = RIDGE_TRY(pretokenizer_name());
  entries["tokenizer.ridge.ignore_merges"] = flag_at(model(), "ignore_merges", false);
  RIDGE_TRY(read_vocabulary());
  RIDGE_TRY(add_tokens());
  entries["tokenizer.ggml.model"] = std::string("gpt2");
  entries["tokenizer.ggml.merges"] = MetadataArray(std::move(parts_.merges));
  return {};
}

Result<void> TokenizerJson::read_bpe_normalizer() {
  for (const json* step : steps_of(at(parts_.rest, "normalizer"), "normalizers")) {
    if (text_at(*step, "type") != "NFC") return unsupported("a normalizer", *step);
    out_.entries()["tokenizer.ridge.normalizer"] = std::string("NFC");
  }
  return {};
}

Result<void> TokenizerJson::check_byte_level(const json& step) const {
  if (text_at(step, "type") != "ByteLevel") return unsupported("a pre-tokenizer", step);
  if (flag_at(step, "add_prefix_space", true)) {
    return refused("its ByteLevel pre-tokenizer puts a space in front (add_prefix_space), which is not supported");
  }
  return {};
}

Result<std::string> TokenizerJson::name_of_split(const json& step) const {
  if (text_at(step, "behavior") != "Isolated" || flag_at(step, "invert", false)) {
    return refused(fmt::format("a Split pre-tokenizer with behavior {}, and only Isolated ones are supported",
                               ridge::quoted(text_at(step, "behavior"))));
  }
  const std::string_view expression = text_at(at(step, "pattern"), "Regex");
  for (const KnownSplit& known : kSplits) {
    if (known.expression == expression) return std::string(known.name);
  }
  return refused(fmt::format("a Split pre-tokenizer with the unknown expression {}", ridge::quoted(expression)));
}

// ByteLevel alone cuts like GPT-2; after a Split it only maps bytes; after Digits it cuts what these leave.
Result<std::string> TokenizerJson::pretokenizer_name() const {
  const json& all = at(parts_.rest, "pre_tokenizer");
  const std::vector<const json*> steps = steps_of(all, "pretokenizers");
  if (steps.empty()) return refused("it has no pre-tokenizer, and only byte-level BPE is supported");
  RIDGE_TRY(check_byte_level(*steps.back()));
  const bool cuts = flag_at(*steps.back(), "use_regex", true);
  if (steps.size() == 1 && cuts) return std::string("gpt-2");
  if (steps.size() == 2) {
    const json& first = *steps.front();
    const std::string_view type = text_at(first, "type");
    if (type == "Split" && !cuts) return name_of_split(first);
    if (type == "Digits" && cuts && flag_at(first, "individual_digits", false)) return std::string("smollm");
    if (type != "Split" && type != "Digits") return unsupported("a pre-tokenizer", first);
  }
  return refused("its sequence of pre-tokenizers is not supported (known: Split or Digits, then ByteLevel)");
}

// ---- Unigram --------------------------------------------------------------------------------------------------------

Result<void> TokenizerJson::read_unigram() {
  if (parts_.scores.empty()) return damaged("a unigram vocabulary without scores");
  RIDGE_TRY(read_unigram_normalizer());
  RIDGE_TRY(read_unigram_pretokenizer());
  RIDGE_TRY(read_vocabulary());
  RIDGE_TRY(add_tokens());
  const json& unknown = at(model(), "unk_id");
  if (!unknown.is_number_integer() || unknown.get<int64_t>() < 0 ||
      static_cast<uint64_t>(unknown.get<int64_t>()) >= tokens_.size()) {
    return damaged("model.unk_id names no token");
  }
  tokens_[static_cast<size_t>(unknown.get<int64_t>())].kind = kUnknown;
  const bool byte_fallback = flag_at(model(), "byte_fallback", false);
  for (Entry& entry : tokens_) {
    const bool is_byte = entry.text.size() == 6 && entry.text.starts_with("<0x") && entry.text.ends_with('>');
    if (byte_fallback && is_byte) entry.kind = kByte;
  }
  auto& entries = out_.entries();
  entries["tokenizer.ggml.model"] = std::string("t5");
  entries["tokenizer.ggml.unknown_token_id"] = unknown.get<int64_t>();
  entries["tokenizer.ridge.byte_fallback"] = byte_fallback;
  return {};
}

Result<void> TokenizerJson::read_unigram_normalizer() {
  auto& entries = out_.entries();
  entries["tokenizer.ggml.remove_extra_whitespaces"] = false;
  for (const json* step : steps_of(at(parts_.rest, "normalizer"), "normalizers")) {
    const std::string_view type = text_at(*step, "type");
    if (type == "Precompiled") {
      const std::string_view text = text_at(*step, "precompiled_charsmap");
      const std::optional<std::string> bytes = decode_base64(text);
      if (!bytes) return damaged("its precompiled_charsmap is no base64");
      std::vector<int32_t> numbers;
      numbers.reserve(bytes->size());
      for (char c : *bytes) numbers.push_back(static_cast<uint8_t>(c));
      entries["tokenizer.ggml.precompiled_charsmap"] = MetadataArray(std::move(numbers));
    } else if (type == "Replace" && text_at(at(*step, "pattern"), "Regex") == " {2,}") {
      entries["tokenizer.ggml.remove_extra_whitespaces"] = true;
    } else if (type != "Strip") {
      return unsupported("a normalizer", *step);
    }
  }
  return {};
}

Result<void> TokenizerJson::read_unigram_pretokenizer() {
  auto& entries = out_.entries();
  bool marks_spaces = false;
  for (const json* step : steps_of(at(parts_.rest, "pre_tokenizer"), "pretokenizers")) {
    const std::string_view type = text_at(*step, "type");
    if (type == "WhitespaceSplit") {
      entries["tokenizer.ggml.remove_extra_whitespaces"] = true;
    } else if (type == "Metaspace" && text_at(*step, "replacement") == "▁") {
      marks_spaces = true;
      const std::string_view scheme = text_at(*step, "prepend_scheme");
      entries["tokenizer.ggml.add_space_prefix"] =
          scheme.empty() ? flag_at(*step, "add_prefix_space", true) : scheme != "never";
    } else {
      return unsupported("a pre-tokenizer", *step);
    }
  }
  if (!marks_spaces) return refused("a unigram model without a Metaspace pre-tokenizer, which is not supported");
  return {};
}

// ---- Both -----------------------------------------------------------------------------------------------------------

Result<int64_t> TokenizerJson::id_of_template_token(const json& step) const {
  const std::string_view name = text_at(at(step, "SpecialToken"), "id");
  for (size_t id = 0; id < tokens_.size(); ++id) {
    if (tokens_[id].text == name && !name.empty()) return static_cast<int64_t>(id);
  }
  return damaged(fmt::format("its post-processor adds the token {}, which does not exist", ridge::quoted(name)));
}

// What is put around a text: at most one token in front and one behind.
Result<void> TokenizerJson::read_post_processor() {
  auto& entries = out_.entries();
  entries["tokenizer.ggml.add_bos_token"] = false;
  entries["tokenizer.ggml.add_eos_token"] = false;
  for (const json* processor : steps_of(at(parts_.rest, "post_processor"), "processors")) {
    const std::string_view type = text_at(*processor, "type");
    if (type == "ByteLevel") continue;  // it only moves offsets
    if (type != "TemplateProcessing") return unsupported("a post-processor", *processor);
    const json& single = at(*processor, "single");
    bool after_text = false;
    for (const json& step : single) {
      if (!at(step, "Sequence").is_null()) {
        after_text = true;
        continue;
      }
      const int64_t id = RIDGE_TRY(id_of_template_token(step));
      const char* adds = after_text ? "tokenizer.ggml.add_eos_token" : "tokenizer.ggml.add_bos_token";
      if (std::get<bool>(entries[adds])) return refused("its post-processor puts two tokens on one side of a text");
      entries[adds] = true;
      entries[after_text ? "tokenizer.ggml.eos_token_id" : "tokenizer.ggml.bos_token_id"] = id;
    }
    if (!after_text) return damaged("its post-processor leaves out the text");
  }
  return {};
}

Result<Metadata> TokenizerJson::read() {
  out_.where = name_;
  if (!model().is_object()) return refused("no tokenizer.json: it has no model");
  if (parts_.texts.size() == 0) return refused("its model has no vocabulary");
  const std::string_view type = text_at(model(), "type");
  // Old files name no type; merges give BPE away.
  if (type == "BPE" || (type.empty() && parts_.merges.size() > 0)) {
    RIDGE_TRY(read_bpe());
  } else if (type == "Unigram") {
    RIDGE_TRY(read_unigram());
  } else {
    return unsupported("a model", model());
  }
  RIDGE_TRY(read_post_processor());
  put_vocabulary();
  return std::move(out_);
}

}  // namespace

Result<Metadata> parse_tokenizer_json(std::span<const uint8_t> bytes, const std::string& name) {
  JsonParts parts = RIDGE_TRY(split_tokenizer_json(bytes, name));
  return TokenizerJson(std::move(parts), name).read();
}

Result<Metadata> read_tokenizer_json(const std::string& path) {
  const std::vector<uint8_t> bytes = RIDGE_TRY(read_whole_file(path, kMostFileBytes));
  return parse_tokenizer_json(bytes, path);
}

}  // namespace ridge
