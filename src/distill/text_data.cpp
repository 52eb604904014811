#include "distill/text_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/printable.h"
#include "base/units.h"
#include "format/whole_file.h"
#include "model/model_file.h"
#include "text/utf8.h"

namespace ridge::distill {
namespace {

constexpr uint64_t kMostBytes = kGiB - 1;
constexpr int kBytes = 256;

std::string utf8_of(uint32_t code) {
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
}

// How byte-level BPE writes a byte: printable ones as they are, the others as the code points from 256 on.
std::vector<std::string> byte_pieces() {
  std::vector<std::string> pieces;
  uint32_t next = kBytes;
  for (uint32_t byte = 0; byte < kBytes; ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    pieces.push_back(utf8_of(printable ? byte : next++));
  }
  return pieces;
}

Result<std::vector<std::string>> files_at(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_directory(path, error)) return std::vector<std::string>{path};
  std::vector<std::string> files;
  for (auto it = fs::recursive_directory_iterator(path, error); !error && it != fs::recursive_directory_iterator();
       it.increment(error)) {
    if (it->is_regular_file(error)) files.push_back(it->path().string());
  }
  if (error) return bad_input(fmt::format("{}: the folder cannot be read ({})", path, error.message()));
  if (files.empty()) return bad_input(fmt::format("{}: the folder holds no file; put texts into it", path));
  std::sort(files.begin(), files.end());
  return files;
}

Result<std::string> read_file(const std::string& path) {
  const std::vector<uint8_t> bytes = RIDGE_TRY(read_whole_file(path, kMostBytes));
  std::string text(bytes.begin(), bytes.end());
  size_t bad = text.find('\0');
  const char* what = "a zero byte";
  if (bad == std::string::npos) {
    bad = first_invalid_utf8(text);
    what = "bytes that are no UTF-8";
  }
  if (bad == std::string::npos) return text;
  return bad_input(fmt::format("{}: {} at offset {}: expected a text in UTF-8; convert the file, or leave it out", path,
                               what, format_count(bad)),
                   bad);
}

}  // namespace

Result<Vocabulary> byte_vocabulary() {
  constexpr int kControl = static_cast<int>(TokenKind::control), kNormal = static_cast<int>(TokenKind::normal);
  StringPool tokens;
  std::vector<int32_t> kinds;
  for (const std::string& piece : byte_pieces()) {
    tokens.push_back(piece);
    kinds.push_back(kNormal);
  }
  tokens.push_back("<|endoftext|>");
  kinds.push_back(kControl);
  Metadata keys;
  auto& entries = keys.entries();
  entries["tokenizer.ggml.model"] = std::string("gpt2");
  entries["tokenizer.ggml.pre"] = std::string("gpt-2");
  entries["tokenizer.ggml.tokens"] = MetadataArray(tokens);
  entries["tokenizer.ggml.token_type"] = MetadataArray(kinds);
  entries["tokenizer.ggml.merges"] = MetadataArray(StringPool());
  entries["tokenizer.ggml.eos_token_id"] = int64_t{kBytes};
  entries["tokenizer.ggml.bos_token_id"] = int64_t{kBytes};
  entries["tokenizer.ggml.add_bos_token"] = false;
  Metadata copy = keys;
  copy.where = "the byte vocabulary";
  return Vocabulary{RIDGE_TRY(Tokenizer::from_metadata(copy)), std::move(keys)};
}

Result<Vocabulary> vocabulary_of(const std::string& path) {
  Gguf file = RIDGE_TRY(open_model_file(path, Verify::headers)).header;
  Metadata keys;
  for (const auto& [key, value] : file.metadata().entries()) {
    if (key.starts_with("tokenizer.")) keys.entries()[key] = value;
  }
  return Vocabulary{RIDGE_TRY(Tokenizer::from_metadata(file.metadata())), std::move(keys)};
}

Result<void> check_same_vocabulary(const Tokenizer& student, const Tokenizer& teacher, std::string_view teacher_name) {
  if (student.size() != teacher.size()) {
    return bad_input(
        fmt::format("{}: the teacher has {} tokens and the student {}: they must have one vocabulary; give "
                    "--tokenizer the teacher's file",
                    teacher_name, teacher.size(), student.size()));
  }
  for (size_t i = 0; i < student.size(); ++i) {
    const TokenId id = static_cast<TokenId>(i);
    if (student.text(id) == teacher.text(id)) continue;
    return bad_input(
        fmt::format("{}: token {} is '{}' for the teacher and '{}' for the student: they must have one "
                    "vocabulary; give --tokenizer the teacher's file",
                    teacher_name, i, printable(teacher.text(id)), printable(student.text(id))));
  }
  return {};
}

Result<TextData> read_data(const std::string& path, const Tokenizer& tokenizer, const TextOptions& options) {
  TextData data;
  std::vector<TokenId> ids;
  for (const std::string& file : RIDGE_TRY(files_at(path))) {
    const std::string text = RIDGE_TRY(read_file(file));
    if (text.empty()) continue;
    if (!ids.empty() && tokenizer.eos()) ids.push_back(*tokenizer.eos());
    const std::vector<TokenId> more = tokenizer.encode(text, {.add_special = false, .parse_special = false});
    ids.insert(ids.end(), more.begin(), more.end());
    data.bytes += text.size();
    if (data.bytes > kMostBytes) return bad_input(fmt::format("{}: more than 1 GiB of text: give less", path));
  }
  if (ids.empty()) return bad_input(fmt::format("{}: no text in it; give a file or a folder with text", path));
  const size_t held = static_cast<size_t>(static_cast<double>(ids.size()) * options.held_out);
  if (held < options.least || ids.size() - held < options.least) {
    return bad_input(
        fmt::format("{}: {} are too few: the part to learn from and the {:.0f} % held out each need {}; "
                    "give more text or a smaller --context",
                    path, counted(ids.size(), "token"), options.held_out * 100, options.least));
  }
  data.bytes_per_token = static_cast<double>(data.bytes) / static_cast<double>(ids.size());
  data.held.assign(ids.end() - static_cast<std::ptrdiff_t>(held), ids.end());
  ids.resize(ids.size() - held);
  data.train = std::move(ids);
  return data;
}

}  // namespace ridge::distill
