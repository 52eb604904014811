// The text that a student learns from, as tokens: a file or a folder, its end held out; and the vocabularies.
//
// Not for: choosing windows of it (the trainer does, by seed and step).
//
//   Vocabulary words = RIDGE_TRY(byte_vocabulary());
//   TextData data = RIDGE_TRY(read_data("stories.txt", *words.tokenizer, {.held_out = 0.1, .least = 129}));
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "format/gguf.h"
#include "text/tokenizer.h"

namespace ridge::distill {

// A tokenizer, and the keys of a GGUF file that it came from: the student's file gets them too.
struct Vocabulary {
  std::unique_ptr<Tokenizer> tokenizer;
  Metadata keys;  // tokenizer.*
};
// 256 bytes and an end of text: byte-level BPE without a merge, which llama.cpp and Ridge both load. Token i < 256 is
// the byte i.
Result<Vocabulary> byte_vocabulary();
Result<Vocabulary> vocabulary_of(const std::string& path);  // of a GGUF file or a pack
// Bad input with the first token that differs, or the sizes.
Result<void> check_same_vocabulary(const Tokenizer& student, const Tokenizer& teacher, std::string_view teacher_name);

struct TextOptions {
  double held_out = 0.1;  // share of the tokens, at the end
  uint64_t least = 2;     // tokens that either part must have
};
struct TextData {
  std::vector<TokenId> train, held;
  uint64_t bytes = 0;
  double bytes_per_token = 1;
};
// Files of a folder are read in the order of their names, those in folders below it too; the vocabulary's end of text
// stands between them. Bad input: no text, zero bytes or broken UTF-8 (with file and offset), too little of it.
Result<TextData> read_data(const std::string& path, const Tokenizer& tokenizer, const TextOptions& options);

}  // namespace ridge::distill
