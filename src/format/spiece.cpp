#include "format/spiece.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "base/units.h"
#include "format/protobuf.h"
#include "format/quote.h"
#include "format/whole_file.h"

namespace ridge {
namespace {

constexpr uint64_t kMostFileBytes = 64 * kMiB;  // mT5's, the largest known, has 4.3 MB
constexpr int64_t kUnigram = 1;
constexpr int32_t kNormal = 1, kUnknown = 2, kControl = 3, kLastType = 6;

std::string_view name_of_model_type(int64_t type) {
  switch (type) {
    case 2:
      return "BPE";
    case 3:
      return "word";
    case 4:
      return "character";
    default:
      return "unknown";
  }
}

struct Pieces {
  StringPool texts;
  std::vector<float> scores;
  std::vector<int32_t> types;
};

// Defaults are those of sentencepiece_model.proto.
struct Trainer {
  int64_t model_type = kUnigram;
  bool white_space_as_suffix = false, byte_fallback = false;
  int64_t bos = 1, eos = 2;
};

struct Normalizer {
  std::span<const uint8_t> charsmap;
  bool dummy_prefix = true, remove_extra_white_space = true, escape_white_space = true;
};

class SpieceReader {
 public:
  SpieceReader(std::span<const uint8_t> bytes, const std::string& name) : bytes_(bytes), name_(name) {}
  Result<Metadata> read();

 private:
  Result<void> read_piece(const ProtobufField& message);
  Result<Trainer> read_trainer(const ProtobufField& message) const;
  Result<Normalizer> read_normalizer(const ProtobufField& message) const;
  Result<void> check(const Trainer& trainer, const Normalizer& normalizer) const;
  Error refused(std::string_view problem) const {
    return bad_input(fmt::format("{}: {}; give the spiece.model of a T5 model", name_, problem));
  }

  std::span<const uint8_t> bytes_;
  const std::string& name_;
  Pieces pieces_;
};

Result<void> SpieceReader::read_piece(const ProtobufField& message) {
  ProtobufReader in(message.bytes, name_, message.content);
  std::string_view text;
  float score = 0;
  int64_t type = kNormal;
  while (!in.done()) {
    const ProtobufField field = RIDGE_TRY(in.next());
    if (field.number == 1) text = RIDGE_TRY(in.string(field, "the text of a piece"));
    if (field.number == 2) score = RIDGE_TRY(in.float32(field, "the score of a piece"));
    if (field.number == 3) type = RIDGE_TRY(in.integer(field, "the type of a piece"));
  }
  auto damaged = [&](std::string_view problem) {
    return bad_input(fmt::format("{}: piece {} ({}) {}: the file is damaged; fetch it again", name_,
                                 format_count(pieces_.texts.size()), ridge::quoted(text), problem),
                     message.offset);
  };
  if (text.empty()) return damaged("has no text");
  if (!std::isfinite(score)) return damaged("has a score that is no number");
  if (type < kNormal || type > kLastType) return damaged(fmt::format("has type {}, expected 1 to 6", type));
  pieces_.texts.push_back(text);
  pieces_.scores.push_back(score);
  pieces_.types.push_back(static_cast<int32_t>(type));
  return {};
}

Result<Trainer> SpieceReader::read_trainer(const ProtobufField& message) const {
  ProtobufReader in(message.bytes, name_, message.content);
  Trainer trainer;
  while (!in.done()) {
    const ProtobufField field = RIDGE_TRY(in.next());
    if (field.number == 3) trainer.model_type = RIDGE_TRY(in.integer(field, "the model type"));
    if (field.number == 24) trainer.white_space_as_suffix = RIDGE_TRY(in.boolean(field, "treat_whitespace_as_suffix"));
    if (field.number == 35) trainer.byte_fallback = RIDGE_TRY(in.boolean(field, "byte_fallback"));
    if (field.number == 41) trainer.bos = RIDGE_TRY(in.integer(field, "bos_id"));
    if (field.number == 42) trainer.eos = RIDGE_TRY(in.integer(field, "eos_id"));
  }
  return trainer;
}

Result<Normalizer> SpieceReader::read_normalizer(const ProtobufField& message) const {
  ProtobufReader in(message.bytes, name_, message.content);
  Normalizer normalizer;
  while (!in.done()) {
    const ProtobufField field = RIDGE_TRY(in.next());
    if (field.number == 2) normalizer.charsmap = RIDGE_TRY(in.bytes(field, "the charsmap"));
    if (field.number == 3) normalizer.dummy_prefix = RIDGE_TRY(in.boolean(field, "add_dummy_prefix"));
    if (field.number == 4) {
      normalizer.remove_extra_white_space = RIDGE_TRY(in.boolean(field, "remove_extra_whitespaces"));
    }
    if (field.number == 5) normalizer.escape_white_space = RIDGE_TRY(in.boolean(field, "escape_whitespaces"));
  }
  return normalizer;
}

Result<void> SpieceReader::check(const Trainer& trainer, const Normalizer& normalizer) const {
  if (trainer.model_type != kUnigram) {
    return refused(fmt::format("a SentencePiece model of type {} ({}), and only unigram models are supported",
                               trainer.model_type, name_of_model_type(trainer.model_type)));
  }
  if (trainer.white_space_as_suffix) return refused("its pieces end, not begin, with white space; not supported");
  if (!normalizer.escape_white_space) return refused("its white space is not escaped as ▁; not supported");
  return {};
}

Result<Metadata> SpieceReader::read() {
  if (bytes_.empty()) return refused("the file is empty");
  std::optional<Trainer> trainer;
  std::optional<Normalizer> normalizer;
  ProtobufReader in(bytes_, name_, 0);
  while (!in.done()) {
    const ProtobufField field = RIDGE_TRY(in.next());
    if (field.number < 1 || field.number > 3) continue;
    RIDGE_TRY(in.bytes(field, "a part of the model"));
    if (field.number == 1) RIDGE_TRY(read_piece(field));
    if (field.number == 2) trainer = RIDGE_TRY(read_trainer(field));
    if (field.number == 3) normalizer = RIDGE_TRY(read_normalizer(field));
  }
  if (pieces_.texts.size() == 0) return refused("no SentencePiece model: it has no pieces");
  // Both are written by every version, after the pieces: a file without them ends between two pieces.
  if (!trainer || !normalizer) {
    return bad_input(fmt::format("{}: the file ends at {}, before its trainer and normalizer: it is cut short; fetch "
                                 "it again",
                                 name_, format_count(bytes_.size())),
                     bytes_.size());
  }
  RIDGE_TRY(check(*trainer, *normalizer));

  auto is = [&](int64_t id, int32_t type) {
    return id >= 0 && static_cast<uint64_t>(id) < pieces_.types.size() &&
           pieces_.types[static_cast<size_t>(id)] == type;
  };
  int64_t unknown = -1;
  for (size_t i = 0; i < pieces_.types.size(); ++i) {
    if (pieces_.types[i] != kUnknown) continue;
    if (unknown >= 0) return refused(fmt::format("pieces {} and {} are both the unknown one", unknown, i));
    unknown = static_cast<int64_t>(i);
  }
  if (unknown < 0) return refused("no piece is the unknown one");

  Metadata metadata;
  metadata.where = name_;
  auto& entries = metadata.entries();
  entries["tokenizer.ggml.model"] = std::string("t5");
  entries["tokenizer.ggml.unknown_token_id"] = unknown;
  entries["tokenizer.ggml.bos_token_id"] = is(trainer->bos, kControl) ? trainer->bos : int64_t{-1};
  const bool ends = is(trainer->eos, kControl);
  entries["tokenizer.ggml.eos_token_id"] = ends ? trainer->eos : int64_t{-1};
  entries["tokenizer.ggml.add_bos_token"] = false;
  entries["tokenizer.ggml.add_eos_token"] = ends;
  entries["tokenizer.ggml.add_space_prefix"] = normalizer->dummy_prefix;
  entries["tokenizer.ggml.remove_extra_whitespaces"] = normalizer->remove_extra_white_space;
  entries["tokenizer.ridge.byte_fallback"] = trainer->byte_fallback;
  entries["tokenizer.ggml.precompiled_charsmap"] =
      MetadataArray(std::vector<int32_t>(normalizer->charsmap.begin(), normalizer->charsmap.end()));
  entries["tokenizer.ggml.tokens"] = MetadataArray(std::move(pieces_.texts));
  entries["tokenizer.ggml.scores"] = MetadataArray(std::move(pieces_.scores));
  entries["tokenizer.ggml.token_type"] = MetadataArray(std::move(pieces_.types));
  return metadata;
}

}  // namespace

Result<Metadata> parse_spiece(std::span<const uint8_t> bytes, const std::string& name) {
  return SpieceReader(bytes, name).read();
}

Result<Metadata> read_spiece(const std::string& path) {
  const std::vector<uint8_t> bytes = RIDGE_TRY(read_whole_file(path, kMostFileBytes));
  return parse_spiece(bytes, path);
}

}  // namespace ridge
