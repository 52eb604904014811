#include "text/tokenizer.h"

#include <fmt/format.h>

#include "format/gguf.h"
#include "format/quote.h"
#include "text/bpe.h"
#include "text/spm.h"
#include "text/unigram.h"

namespace ridge {
namespace {

// One row for each kind of tokenizer Ridge can build.
struct Family {
  std::string_view model;  // tokenizer.ggml.model
  Result<std::unique_ptr<Tokenizer>> (*take)(Metadata& metadata);
};
constexpr Family kFamilies[] = {
    {"gpt2", BpeTokenizer::take},
    {"llama", SpmTokenizer::take},
    {"t5", UnigramTokenizer::take},
};

// What other names in use mean, so that the refusal can say it.
struct Stranger {
  std::string_view model, meaning;
};
constexpr Stranger kStrangers[] = {
    {"bert", "WordPiece"},
    {"rwkv", "RWKV's byte trie"},
    {"plamo2", "PLaMo's Aho-Corasick table"},
    {"gemma4", "BPE over raw UTF-8"},
    {"hybriddna", "DNA k-mers"},
    {"whitespace", "words between spaces"},
};

}  // namespace

Result<std::unique_ptr<Tokenizer>> Tokenizer::from_metadata(Metadata& metadata) {
  const auto model = RIDGE_TRY(metadata.string("tokenizer.ggml.model"));
  if (!model) {
    return bad_input(fmt::format("{}: tokenizer.ggml.model is missing: the file has no tokenizer", metadata.where));
  }
  for (const Family& family : kFamilies) {
    if (family.model == *model) return family.take(metadata);
  }
  if (*model == "none" || *model == "no_vocab") {
    return bad_input(
        fmt::format("{}: the file has no tokenizer (tokenizer.ggml.model is '{}'); use a file converted with its "
                    "vocabulary",
                    metadata.where, *model));
  }
  std::string meaning;
  for (const Stranger& stranger : kStrangers) {
    if (stranger.model == *model) meaning = fmt::format(" ({})", stranger.meaning);
  }
  return bad_input(
      fmt::format("{}: tokenizers of kind {}{} are not supported; known are 'gpt2' (byte-level BPE), 'llama' "
                  "(SentencePiece BPE) and 't5' (SentencePiece unigram)",
                  metadata.where, in_quotes(*model), meaning));
}

}  // namespace ridge
