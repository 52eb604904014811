#include "text/tokenizer_base.h"

#include <algorithm>

namespace ridge {

VocabularyTokenizer::VocabularyTokenizer(Vocabulary vocabulary, SpecialTokenOptions special)
    : vocabulary_(std::move(vocabulary)), special_(vocabulary_, std::move(special)) {}

std::vector<TokenId> VocabularyTokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  RIDGE_CHECK(text.size() < (size_t{1} << 30), "a text to encode is below 1 GiB: positions are 32 bits wide");
  std::vector<TokenId> ids;
  if (options.add_special && vocabulary_.adds_bos()) ids.push_back(*vocabulary_.bos());
  for (const TextPiece& piece : special_.cut(vocabulary_, text, options.parse_special)) {
    if (piece.token) {
      ids.push_back(*piece.token);
    } else {
      encode_text(piece.text, ids);
    }
  }
  if (options.add_special && vocabulary_.adds_eos()) ids.push_back(*vocabulary_.eos());
  return ids;
}

std::string VocabularyTokenizer::piece(TokenId id, bool show_special) const {
  const std::string_view stored = vocabulary_.text(id);
  switch (vocabulary_.kind(id)) {
    case TokenKind::normal: {
      std::string out;
      append_normal(stored, out);
      return out;
    }
    case TokenKind::user_defined:
      return std::string(stored);
    case TokenKind::byte:
      if (const auto byte = byte_of_text(stored)) return std::string(1, static_cast<char>(*byte));
      return std::string(stored);
    case TokenKind::control:
    case TokenKind::unknown:
    case TokenKind::unused:
    case TokenKind::undefined:
      break;
  }
  return show_special ? std::string(stored) : std::string();
}

Result<SpecialTokenOptions> special_token_options(const Metadata& metadata, const Vocabulary& vocabulary) {
  // Nothing in a GGUF file says which tokens strip the text beside them, so the name of the model decides, here alone.
  std::string name = RIDGE_TRY(metadata.string("general.name")).value_or("");
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  SpecialTokenOptions options;
  options.swallows_space = name.find("phi-3") != name.npos || name.find("phi3") != name.npos;
  if (options.swallows_space) {
    for (std::string_view text : {"<unk>", "<s>", "<|endoftext|>"}) {
      if (const auto id = vocabulary.find(text)) options.except.push_back(*id);
    }
  }
  return options;
}

void append_with_spaces(std::string_view stored, std::string& out) {
  constexpr std::string_view kSpaceMark = "▁";
  while (!stored.empty()) {
    const size_t mark = stored.find(kSpaceMark);
    out.append(stored.substr(0, mark));
    if (mark == stored.npos) return;
    out.push_back(' ');
    stored.remove_prefix(mark + kSpaceMark.size());
  }
}

std::optional<uint8_t> byte_of_text(std::string_view text) {
  auto digit = [](char c) -> int {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  if (text.size() != 6 || text.substr(0, 3) != "<0x" || text[5] != '>') return std::nullopt;
  const int high = digit(text[3]), low = digit(text[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<uint8_t>(high * 16 + low);
}

}  // namespace ridge
