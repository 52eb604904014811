// Text to token ids and back: byte-level BPE and SentencePiece BPE, read from GGUF metadata.
//
// Not for: chat formatting (chat_template.h), choosing tokens (sampler.h).
//
//   auto tokenizer = RIDGE_TRY(Tokenizer::from_metadata(gguf.metadata()));
//   std::vector<TokenId> ids = tokenizer->encode("Hello", {.add_special = true});
//   std::string text = tokenizer->decode(ids, {});
//
// Thread-safe once built.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ridge {

class Metadata;

using TokenId = int32_t;

struct EncodeOptions {
  bool add_special = true;     // BOS and EOS as the model wants them
  bool parse_special = false;  // text such as <|im_end|> becomes its control token
};

struct DecodeOptions {
  bool show_special = false;        // print control tokens' text too
  bool keep_leading_space = false;  // do not drop the space that the tokenizer itself had put in front
};

enum class TokenKind : uint8_t {
  undefined = 0,
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Takes the vocabulary out of the metadata (moved, not copied). Bad input if there is none or it is broken;
  // `tokenizer.ggml.model` = "none" is an error that says the file has no tokenizer.
  static Result<std::unique_ptr<Tokenizer>> from_metadata(Metadata& metadata);

  // `text` (below 1 GiB) need not be valid UTF-8: bad bytes become byte tokens or the tokens of single bytes.
  virtual std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options) const = 0;
  std::string decode(std::span<const TokenId> ids, const DecodeOptions& options) const;

  // Bytes that one token prints in the middle of a text (may be part of a UTF-8 character); control: empty unless
  // shown.
  virtual std::string piece(TokenId id, bool show_special) const = 0;
  // The text of the vocabulary entry as stored.
  virtual std::string_view text(TokenId id) const = 0;
  virtual TokenKind kind(TokenId id) const = 0;
  virtual std::optional<TokenId> find(std::string_view text) const = 0;

  virtual size_t size() const = 0;
  virtual std::string description() const = 0;  // "BPE (smollm), 49,152 tokens"
  virtual std::optional<TokenId> bos() const = 0;
  virtual std::optional<TokenId> eos() const = 0;
  virtual bool adds_bos() const = 0;
  virtual bool adds_space_prefix() const = 0;
  // Generation ends at these: eos, eot, eom and the texts that mean the same (facts: llm_checks, Tokenizers 2).
  virtual bool is_end_of_generation(TokenId id) const = 0;
  // Bytes this object holds, for the memory account.
  virtual uint64_t memory_bytes() const = 0;
};

// Turns tokens into text as they come, never cutting a UTF-8 character: bytes of an unfinished character wait.
//   out += stream.push(id);   …   out += stream.finish();
class DetokenizeStream {
 public:
  DetokenizeStream(const Tokenizer& tokenizer, DecodeOptions options);
  std::string push(TokenId id);
  std::string finish();  // what is left, even if it is no complete character

 private:
  const Tokenizer& tokenizer_;
  DecodeOptions options_;
  bool first_ = true;
  std::string pending_;
};

}  // namespace ridge
