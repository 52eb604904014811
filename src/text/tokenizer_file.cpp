#include "text/tokenizer_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "format/file_stream.h"
#include "format/spiece.h"
#include "format/tokenizer_json.h"

namespace ridge {
namespace {

using FirstBytes = std::array<uint8_t, 64>;

Result<std::string_view> read_first(const std::string& path, FirstBytes& buffer) {
  FileStream in = RIDGE_TRY(FileStream::open(path, {.chunk_bytes = 4096}));
  const size_t bytes = static_cast<size_t>(std::min<uint64_t>(buffer.size(), in.size()));
  RIDGE_TRY(in.read(buffer.data(), bytes));
  return std::string_view(reinterpret_cast<const char*>(buffer.data()), bytes);
}

TokenizerFileKind kind_of(std::string_view first) {
  const size_t text = first.find_first_not_of(" \t\r\n");
  if (text != first.npos && first[text] == '{') return TokenizerFileKind::tokenizer_json;
  // The first piece: tag 1 with a length, and in it the piece's text, tag 1 with a length.
  if (first.size() >= 4 && first[0] == '\x0A' && first[2] == '\x0A') return TokenizerFileKind::spiece;
  return TokenizerFileKind::other;
}

}  // namespace

Result<TokenizerFileKind> tokenizer_file_kind(const std::string& path) {
  FirstBytes buffer{};
  return kind_of(RIDGE_TRY(read_first(path, buffer)));
}

Result<std::unique_ptr<Tokenizer>> open_tokenizer_file(const std::string& path) {
  FirstBytes buffer{};
  const std::string_view first = RIDGE_TRY(read_first(path, buffer));
  switch (kind_of(first)) {
    case TokenizerFileKind::spiece: {
      Metadata metadata = RIDGE_TRY(read_spiece(path));
      return Tokenizer::from_metadata(metadata);
    }
    case TokenizerFileKind::tokenizer_json: {
      Metadata metadata = RIDGE_TRY(read_tokenizer_json(path));
      return Tokenizer::from_metadata(metadata);
    }
    case TokenizerFileKind::other:
      break;
  }
  return bad_input(fmt::format("{}: no tokenizer: expected a spiece.model or a tokenizer.json", path));
}

}  // namespace ridge
