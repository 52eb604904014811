#include "format/gguf_raw.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "format/file_stream.h"

namespace ridge {
namespace {

// Value types as in the format (gguf_reader.h), and the bytes of those of one size.
constexpr uint32_t kRawUint32 = 4, kRawString = 8, kRawArray = 9;
constexpr std::array<uint8_t, 13> kRawBytes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

Error changed(const ByteStream& in) {
  return bad_input(fmt::format("{}: the file changed while it was read: start again", in.name()), in.position());
}

// Appends the next `bytes` bytes.
Result<void> take(ByteStream& in, uint64_t bytes, std::string& out) {
  if (bytes > in.remaining()) return changed(in);
  const size_t at = out.size();
  out.resize(at + bytes);
  return in.read(out.data() + at, bytes);
}

template <class T>
Result<T> take_as(ByteStream& in, std::string& out) {
  RIDGE_TRY(take(in, sizeof(T), out));
  T value;
  std::memcpy(&value, out.data() + out.size() - sizeof value, sizeof value);
  return value;
}

Result<void> take_value(ByteStream& in, uint32_t type, std::string& out) {
  if (type >= kRawBytes.size() || type == kRawArray) return changed(in);
  if (type != kRawString) return take(in, kRawBytes[type], out);
  const auto length = RIDGE_TRY(take_as<uint64_t>(in, out));
  return take(in, length, out);
}

Result<void> take_array(ByteStream& in, std::string& out) {
  const auto type = RIDGE_TRY(take_as<uint32_t>(in, out));
  const auto count = RIDGE_TRY(take_as<uint64_t>(in, out));
  if (type >= kRawBytes.size() || type == kRawArray || count > in.remaining()) return changed(in);
  if (type != kRawString) return take(in, count * kRawBytes[type], out);
  for (uint64_t i = 0; i < count; ++i) RIDGE_TRY(take_value(in, type, out));
  return {};
}

// Little-endian, as every machine is that Ridge runs on.
template <class T>
void append_raw(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void append_text(std::string& out, std::string_view text) {
  append_raw<uint64_t>(out, text.size());
  out.append(text);
}

}  // namespace

Result<GgufRaw> GgufRaw::read(const Gguf& source) {
  const std::string& path = source.files().front().path;
  if (source.files().size() > 1) {
    return bad_input(
        fmt::format("{}: is one of {} parts of a model: join them into one file first (llama-gguf-split "
                    "--merge)",
                    path, source.files().size()));
  }
  GgufRaw out;
  out.alignment_ = RIDGE_TRY(source.metadata().uint("general.alignment")).value_or(32);
  FileStream in = RIDGE_TRY(FileStream::open(path));
  RIDGE_TRY(in.skip(8));  // magic and version
  const auto tensors = RIDGE_TRY(in.read_as<uint64_t>());
  const auto count = RIDGE_TRY(in.read_as<uint64_t>());
  if (tensors != source.tensors().size() || count != source.metadata().entries().size()) return changed(in);
  for (uint64_t i = 0; i < count; ++i) {
    const auto length = RIDGE_TRY(in.read_as<uint64_t>());
    std::string key, value;
    RIDGE_TRY(take(in, length, key));
    const auto type = RIDGE_TRY(take_as<uint32_t>(in, value));
    RIDGE_TRY(type == kRawArray ? take_array(in, value) : take_value(in, type, value));
    out.entries_.emplace_back(std::move(key), std::move(value));
  }
  return out;
}

void GgufRaw::set(const std::string& key, uint32_t value) {
  std::string bytes;
  append_raw(bytes, kRawUint32);
  append_raw(bytes, value);
  const auto at = std::find_if(entries_.begin(), entries_.end(), [&](const auto& e) { return e.first == key; });
  if (at == entries_.end()) {
    entries_.emplace_back(key, bytes);
  } else {
    at->second = bytes;
  }
}

uint64_t GgufRaw::header_bytes(std::span<const GgufTensor> tensors) const {
  uint64_t bytes = 4 + 4 + 8 + 8;
  for (const auto& [key, value] : entries_) bytes += 8 + key.size() + value.size();
  for (const GgufTensor& t : tensors) bytes += 8 + t.name.size() + 4 + uint64_t{8} * t.dims + 4 + 8;
  return aligned(bytes);
}

void GgufRaw::lay_out(std::vector<GgufTensor>& tensors) const {
  uint64_t at = header_bytes(tensors);
  for (GgufTensor& t : tensors) {
    t.file = 0;
    t.bytes = t.rows() * row_bytes(t.type, t.cols());
    t.offset = at;
    at = aligned(at + t.bytes);
  }
}

uint64_t GgufRaw::file_bytes(std::span<const GgufTensor> tensors) const {
  uint64_t end = header_bytes(tensors);
  for (const GgufTensor& t : tensors) end = std::max(end, aligned(t.offset + t.bytes));
  return end;
}

std::string GgufRaw::header(std::span<const GgufTensor> tensors) const {
  constexpr uint32_t kVersion = 3;  // 2 differs in nothing but big-endian files
  const uint64_t bytes = header_bytes(tensors);
  std::string out = "GGUF";
  append_raw(out, kVersion);
  append_raw<uint64_t>(out, tensors.size());
  append_raw<uint64_t>(out, entries_.size());
  for (const auto& [key, value] : entries_) {
    append_text(out, key);
    out += value;
  }
  for (const GgufTensor& t : tensors) {
    append_text(out, t.name);
    append_raw(out, t.dims);
    for (uint32_t d = 0; d < t.dims; ++d) append_raw(out, t.shape[d]);
    append_raw(out, static_cast<uint32_t>(t.type));
    append_raw<uint64_t>(out, t.offset - bytes);
  }
  out.resize(bytes, '\0');
  return out;
}

}  // namespace ridge
