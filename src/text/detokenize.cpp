// Ids to text: at once (Tokenizer::decode) and as they come (DetokenizeStream). Both print the same bytes.
#include "text/tokenizer.h"
#include "text/unicode.h"

namespace ridge {
namespace {

// What the token prints here. The first token that prints anything loses the one space the tokenizer had put in front.
std::string printed(const Tokenizer& tokenizer, TokenId id, const DecodeOptions& options, bool& first) {
  std::string piece = tokenizer.piece(id, options.show_special);
  if (!first || piece.empty()) return piece;
  first = false;
  if (tokenizer.adds_space_prefix() && !options.keep_leading_space && piece.front() == ' ') piece.erase(0, 1);
  return piece;
}

}  // namespace

std::string Tokenizer::decode(std::span<const TokenId> ids, const DecodeOptions& options) const {
  std::string text;
  bool first = true;
  for (TokenId id : ids) text += printed(*this, id, options, first);
  return text;
}

DetokenizeStream::DetokenizeStream(const Tokenizer& tokenizer, DecodeOptions options)
    : tokenizer_(tokenizer), options_(options) {}

std::string DetokenizeStream::push(TokenId id) {
  pending_ += printed(tokenizer_, id, options_, first_);
  const size_t ready = pending_.size() - incomplete_suffix(pending_);
  std::string text = pending_.substr(0, ready);
  pending_.erase(0, ready);
  return text;
}

std::string DetokenizeStream::finish() { return std::move(pending_); }

}  // namespace ridge
