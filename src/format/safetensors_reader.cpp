#include "format/safetensors_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "format/gguf_magic.h"
#include "format/quote.h"

namespace ridge {
namespace {

// The reference implementation's limit on headers; the largest model known has 3 MB. 65,536 entries of a SafeTensor
// (136 bytes and their names) and an index over them are 9 MiB, half as much again while the list grows.
constexpr uint64_t kMostHeaderBytes = 100'000'000;
constexpr uint64_t kMostTensors = 65'536;
constexpr size_t kLongestName = 1024, kLongestWord = 32;

struct TypeRow {
  std::string_view name;
  SafeType type;
  uint8_t bytes;
};
constexpr TypeRow kTypes[] = {
    {"BOOL", SafeType::BOOL, 1},       {"U8", SafeType::U8, 1},           {"I8", SafeType::I8, 1},
    {"F8_E4M3", SafeType::F8_E4M3, 1}, {"F8_E5M2", SafeType::F8_E5M2, 1}, {"U16", SafeType::U16, 2},
    {"I16", SafeType::I16, 2},         {"F16", SafeType::F16, 2},         {"BF16", SafeType::BF16, 2},
    {"U32", SafeType::U32, 4},         {"I32", SafeType::I32, 4},         {"F32", SafeType::F32, 4},
    {"U64", SafeType::U64, 8},         {"I64", SafeType::I64, 8},         {"F64", SafeType::F64, 8},
};

const TypeRow& row_of(SafeType type) { return kTypes[static_cast<size_t>(type)]; }

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

void append_utf8(std::string& out, uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
    return;
  }
  if (code < 0x800) {
    out += static_cast<char>(0xC0 | code >> 6);
  } else {
    out += static_cast<char>(0xE0 | code >> 12);
    out += static_cast<char>(0x80 | (code >> 6 & 0x3F));
  }
  out += static_cast<char>(0x80 | (code & 0x3F));
}

}  // namespace

std::string_view name_of(SafeType type) { return row_of(type).name; }
uint64_t bytes_of(SafeType type) { return row_of(type).bytes; }

Result<Safetensors> SafetensorsReader::read() {
  const std::string& name = in_.name();
  if (in_.size() == 0) {
    return bad_input(fmt::format("{}: the file is empty, expected safetensors; fetch it again", name), 0);
  }
  out_.files_.push_back({name, in_.size()});
  constexpr uint64_t kSmallest = 8 + 2;  // a length and {}
  if (in_.size() < kSmallest) {
    return bad_input(fmt::format("{}: the file ends at {}, inside the length of its header: it is cut short; fetch it "
                                 "again",
                                 name, in_.size()),
                     in_.size());
  }
  const uint64_t length = RIDGE_TRY(in_.read_as<uint64_t>());
  constexpr uint32_t kGgufMagic = 0x46554747;
  constexpr uint64_t kPackMagic = 0x4b43504547444952;  // RIDGEPCK
  if (static_cast<uint32_t>(length) == kGgufMagic) {
    return bad_input(fmt::format("{}: a GGUF file, where a safetensors file is expected: give that", name), 0);
  }
  if (length == kPackMagic) {
    return bad_input(fmt::format("{}: a pack, where a safetensors file is expected: give that", name), 0);
  }
  if (length > kMostHeaderBytes) {
    return bad_input(
        fmt::format("{}: not a safetensors file: it claims a header of {} bytes, expected at most {}; give "
                    "a .safetensors or .gguf file",
                    name, format_count(length), format_count(kMostHeaderBytes)),
        0);
  }
  header_end_ = 8 + length;
  if (length > in_.remaining()) {
    return bad_input(fmt::format("{}: its header ends at {}, past the end of the file ({}): the file is cut short; "
                                 "fetch it again",
                                 name, format_count(header_end_), format_count(in_.size())),
                     in_.size());
  }
  RIDGE_TRY(read_header());
  RIDGE_TRY(check_data());
  RIDGE_TRY(out_.index_names());
  return std::move(out_);
}

Result<void> SafetensorsReader::read_header() {
  RIDGE_TRY(expect('{'));
  bool metadata = false;
  if (RIDGE_TRY(peek()) == '}') {
    RIDGE_TRY(expect('}'));
  } else {
    do {
      current_.clear();
      std::string name = RIDGE_TRY(read_string(kLongestName, "a name"));
      current_ = name;
      RIDGE_TRY(expect(':'));
      if (name == "__metadata__") {
        if (metadata) return damaged("occurs twice");
        metadata = true;
        RIDGE_TRY(read_metadata());
        continue;
      }
      RIDGE_TRY(read_entry(std::move(name)));
    } while (RIDGE_TRY(list_goes_on('}')));
  }
  current_.clear();
  // Writers fill the header with spaces so that the data are aligned.
  while (in_.position() - (ahead_ ? 1 : 0) < header_end_) {
    if (!is_space(RIDGE_TRY(next()))) return damaged("goes on after its closing brace");
  }
  return {};
}

Result<void> SafetensorsReader::read_metadata() {
  RIDGE_TRY(expect('{'));
  if (RIDGE_TRY(peek()) == '}') return expect('}');
  do {
    RIDGE_TRY(skip_string());
    RIDGE_TRY(expect(':'));
    RIDGE_TRY(skip_string());
  } while (RIDGE_TRY(list_goes_on('}')));
  return {};
}

Result<void> SafetensorsReader::read_entry(std::string name) {
  if (name.empty()) return damaged("has a tensor without a name");
  if (out_.tensors_.size() == kMostTensors) {
    return damaged(fmt::format("has more than {} tensors", format_count(kMostTensors)));
  }
  SafeTensor tensor;
  tensor.name = std::move(name);
  bool type = false, shape = false, offsets = false;
  RIDGE_TRY(expect('{'));
  do {
    const std::string key = RIDGE_TRY(read_string(kLongestWord, "a key"));
    RIDGE_TRY(expect(':'));
    bool* seen = key == "dtype" ? &type : key == "shape" ? &shape : key == "data_offsets" ? &offsets : nullptr;
    if (seen == nullptr) {
      return damaged(fmt::format("has the key {}, expected dtype, shape and data_offsets", in_quotes(key)));
    }
    if (*seen) return damaged(fmt::format("has '{}' twice", key));
    *seen = true;
    if (seen == &shape) {
      RIDGE_TRY(read_shape(tensor));
      continue;
    }
    if (seen == &offsets) {
      RIDGE_TRY(read_offsets(tensor));
      continue;
    }
    const std::string word = RIDGE_TRY(read_string(kLongestWord, "a type"));
    auto row = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypeRow& t) { return t.name == word; });
    if (row == std::end(kTypes))
      return damaged(fmt::format("has the type {}, which safetensors has not", in_quotes(word)));
    tensor.type = row->type;
  } while (RIDGE_TRY(list_goes_on('}')));
  if (!type || !shape || !offsets) return damaged("lacks one of dtype, shape and data_offsets");
  RIDGE_TRY(place(tensor));
  out_.tensors_.push_back(std::move(tensor));
  return {};
}

Result<void> SafetensorsReader::read_shape(SafeTensor& tensor) {
  RIDGE_TRY(expect('['));
  if (RIDGE_TRY(peek()) == ']') return expect(']');
  do {
    if (tensor.dims == tensor.shape.size()) {
      return damaged(fmt::format("has more than {} dimensions", tensor.shape.size()));
    }
    tensor.shape[tensor.dims++] = RIDGE_TRY(read_number("a dimension"));
  } while (RIDGE_TRY(list_goes_on(']')));
  return {};
}

// [begin, end) within the data; kept as offset and bytes until place().
Result<void> SafetensorsReader::read_offsets(SafeTensor& tensor) {
  RIDGE_TRY(expect('['));
  tensor.offset = RIDGE_TRY(read_number("an offset"));
  RIDGE_TRY(expect(','));
  const uint64_t end = RIDGE_TRY(read_number("an offset"));
  RIDGE_TRY(expect(']'));
  if (end < tensor.offset) {
    return damaged(fmt::format("ends at {} of the data, before its beginning at {}", format_count(end),
                               format_count(tensor.offset)));
  }
  tensor.bytes = end - tensor.offset;
  return {};
}

// Makes the offset absolute; the bytes must lie in the file and be those of type and shape.
Result<void> SafetensorsReader::place(SafeTensor& tensor) const {
  const uint64_t data = in_.size() - header_end_;
  if (tensor.offset > data || tensor.bytes > data - tensor.offset) {
    return bad_input(fmt::format("{}: tensor {} has the bytes {} to {} of the data, of which the file holds {}: it is "
                                 "cut short; fetch it again",
                                 in_.name(), in_quotes(tensor.name), format_count(tensor.offset),
                                 format_count(tensor.offset + tensor.bytes), format_count(data)),
                     header_end_);
  }
  uint64_t bytes = bytes_of(tensor.type);
  for (uint64_t n : tensor.dimensions()) {
    // A zero among the dimensions makes the product zero, whatever the others are.
    if (__builtin_mul_overflow(bytes, n, &bytes) || bytes > INT64_MAX) {
      return damaged(fmt::format("has the shape [{}], whose product overflows", fmt::join(tensor.dimensions(), ", ")));
    }
  }
  if (bytes != tensor.bytes) {
    return damaged(fmt::format("has {} bytes, expected {} for {} of shape [{}]", format_count(tensor.bytes),
                               format_count(bytes), name_of(tensor.type), fmt::join(tensor.dimensions(), ", ")));
  }
  tensor.offset += header_end_;
  return {};
}

// In order of their data, one tensor begins where the one before it ends, and the last ends with the file.
Result<void> SafetensorsReader::check_data() {
  std::vector<SafeTensor>& tensors = out_.tensors_;
  std::sort(tensors.begin(), tensors.end(), [](const SafeTensor& a, const SafeTensor& b) {
    return a.offset != b.offset ? a.offset < b.offset : a.bytes < b.bytes;
  });
  uint64_t end = header_end_;
  for (const SafeTensor& t : tensors) {
    if (t.offset != end) {
      return bad_input(fmt::format("{}: tensor {} begins at {}, {} the end of the one before it ({}): the file is "
                                   "damaged; fetch it again",
                                   in_.name(), in_quotes(t.name), format_count(t.offset),
                                   t.offset < end ? "which is before" : "which leaves a hole after", format_count(end)),
                       t.offset);
    }
    end += t.bytes;
  }
  if (end == in_.size()) return {};
  return bad_input(fmt::format("{}: the tensors end at {}, and the file at {}: it is damaged; fetch it again",
                               in_.name(), format_count(end), format_count(in_.size())),
                   end);
}

Result<char> SafetensorsReader::next() {
  if (ahead_) {
    const char c = *ahead_;
    ahead_.reset();
    return c;
  }
  if (in_.position() >= header_end_) return damaged("ends too early");
  return static_cast<char>(RIDGE_TRY(in_.read_as<uint8_t>()));
}

Result<char> SafetensorsReader::peek() {
  char c = RIDGE_TRY(next());
  while (is_space(c)) c = RIDGE_TRY(next());
  ahead_ = c;
  return c;
}

Result<void> SafetensorsReader::expect(char wanted) {
  const char c = RIDGE_TRY(peek());
  if (c != wanted) {
    return damaged(fmt::format("has {} where '{}' was expected", in_quotes(std::string_view(&c, 1)), wanted));
  }
  ahead_.reset();
  return {};
}

Result<bool> SafetensorsReader::list_goes_on(char end) {
  if (RIDGE_TRY(peek()) == ',') {
    RIDGE_TRY(expect(','));
    return true;
  }
  RIDGE_TRY(expect(end));
  return false;
}

Result<std::string> SafetensorsReader::read_string(size_t longest, std::string_view what) {
  RIDGE_TRY(expect('"'));
  std::string text;
  while (RIDGE_TRY(read_character(text))) {
    if (text.size() > longest) {
      return damaged(fmt::format("has {} of more than {} bytes", what, format_count(longest)));
    }
  }
  return text;
}

Result<void> SafetensorsReader::skip_string() {
  RIDGE_TRY(expect('"'));
  std::string text;
  while (RIDGE_TRY(read_character(text))) text.clear();
  return {};
}

Result<bool> SafetensorsReader::read_character(std::string& out) {
  const char c = RIDGE_TRY(next());
  if (c == '"') return false;
  if (static_cast<unsigned char>(c) < 0x20) return damaged("has a control character inside a string");
  if (c == '\\') {
    RIDGE_TRY(read_escape(out));
  } else {
    out += c;
  }
  return true;
}

Result<void> SafetensorsReader::read_escape(std::string& out) {
  const char c = RIDGE_TRY(next());
  constexpr std::string_view kLetters = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
  if (const size_t at = kLetters.find(c); at != std::string_view::npos) {
    out += kMeanings[at];
    return {};
  }
  if (c != 'u') return damaged("has an escape that JSON has not");
  uint32_t code = 0;
  for (int i = 0; i < 4; ++i) {
    const char h = RIDGE_TRY(next());
    const char lower = static_cast<char>(h | 0x20);
    if (h >= '0' && h <= '9') {
      code = 16 * code + static_cast<uint32_t>(h - '0');
    } else if (lower >= 'a' && lower <= 'f') {
      code = 16 * code + static_cast<uint32_t>(lower - 'a' + 10);
    } else {
      return damaged("has an escape that JSON has not");
    }
  }
  append_utf8(out, code);
  return {};
}

Result<uint64_t> SafetensorsReader::read_number(std::string_view what) {
  auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  uint64_t value = 0;
  int digits = 0;
  for (char c = RIDGE_TRY(peek()); is_digit(c); c = *ahead_) {
    if (digits > 0 && value == 0) return damaged(fmt::format("has {} with a leading zero", what));
    ++digits;
    if (__builtin_mul_overflow(value, uint64_t{10}, &value) ||
        __builtin_add_overflow(value, static_cast<uint64_t>(c - '0'), &value)) {
      return damaged(fmt::format("has {} beyond 64 bits", what));
    }
    ahead_.reset();
    ahead_ = RIDGE_TRY(next());
  }
  if (digits == 0) return damaged(fmt::format("has {} that is no whole number", what));
  return value;
}

Error SafetensorsReader::damaged(std::string_view problem) const {
  const std::string subject =
      current_.empty() ? "its header" : fmt::format("the header's entry {}", in_quotes(current_));
  return bad_input(fmt::format("{}: {} {}: the file is damaged, or no safetensors file; fetch it again", in_.name(),
                               subject, problem),
                   in_.position());
}

}  // namespace ridge
