// `tokenizer.json`, the tokenizers of the Hugging Face hub: byte-level BPE (Qwen, GPT-2, Llama 3, SmolLM) and unigram
// (T5). It becomes the metadata that a GGUF file of the model would carry, so that one tokenizer serves both.
//
// What is read, and what it becomes:
//
//   model BPE          vocab, merges ("a b" or ["a", "b"]), ignore_merges → tokens, merges
//   model Unigram      vocab [[piece, score], …], unk_id, byte_fallback   → "t5" with scores
//   added_tokens       special: control tokens; others: user-defined
//   normalizer         null, NFC; for unigram Precompiled, alone or followed by Strip and Replace of spaces
//   pre_tokenizer      ByteLevel, after Split or Digits: a row of the pre-tokenizers' table; Metaspace, WhitespaceSplit
//   post_processor     TemplateProcessing with one token in front (BOS) and one behind (EOS)
//
// Everything else that would change the ids is refused by name: nothing is guessed. Not read: decoder, truncation,
// padding.
//
//   Metadata metadata = RIDGE_TRY(read_tokenizer_json("tokenizer.json"));
//   auto qwen = RIDGE_TRY(Tokenizer::from_metadata(metadata));
//
// The vocabulary goes straight into its pools, the rest into a small tree. A file of at most 64 MiB is held while it is
// read, and beside it at most eight times as much, and 32 MiB.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "format/gguf.h"

namespace ridge {

Result<Metadata> read_tokenizer_json(const std::string& path);
// The same from bytes in memory; `name` stands in messages.
Result<Metadata> parse_tokenizer_json(std::span<const uint8_t> bytes, const std::string& name);

}  // namespace ridge
