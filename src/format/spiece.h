// `spiece.model`: a SentencePiece unigram vocabulary (a protobuf ModelProto), as T5 has one. It becomes the metadata
// that a GGUF file of a T5 model would carry, so that one tokenizer serves both.
//
//   ModelProto       1 pieces, id = order · 2 trainer · 3 normalizer
//   piece            1 text · 2 score (float) · 3 type: 1 normal (default) 2 unknown 3 control 4 user-defined 5 unused
//   6 byte trainer          3 model type (1 = unigram) · 24 white space as suffix · 35 byte fallback · 40 unk · 41 bos
//   · 42 eos normalizer       1 name · 2 charsmap · 3 dummy prefix · 4 remove extra white space · 5 escape white space
//
// Not for: BPE, word and character models of SentencePiece (refused with their kind), what the charsmap means
// (text/charsmap.h).
//
//   Metadata metadata = RIDGE_TRY(read_spiece("spiece.model"));
//   auto t5 = RIDGE_TRY(Tokenizer::from_metadata(metadata));
//
// As strict as the GGUF reader: what a file can make us hold is 12 times its size, and no file above 64 MiB is read.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "format/gguf.h"

namespace ridge {

Result<Metadata> read_spiece(const std::string& path);
// The same from bytes in memory; `name` stands in messages.
Result<Metadata> parse_spiece(std::span<const uint8_t> bytes, const std::string& name);

}  // namespace ridge
