// Tokenizers that stand in files of their own: spiece.model (format/spiece.h) and tokenizer.json
// (format/tokenizer_json.h), told apart by their first bytes.
//
// Not for: tokenizers inside of model files (Tokenizer::from_metadata).
//
//   std::unique_ptr<Tokenizer> t5 = RIDGE_TRY(open_tokenizer_file("spiece.model"));
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "text/tokenizer.h"

namespace ridge {

enum class TokenizerFileKind : uint8_t { other, spiece, tokenizer_json };

// Bad input if the file cannot be read.
Result<TokenizerFileKind> tokenizer_file_kind(const std::string& path);

// Bad input: neither of the two, or broken.
Result<std::unique_ptr<Tokenizer>> open_tokenizer_file(const std::string& path);

}  // namespace ridge
