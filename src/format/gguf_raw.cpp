#include "format/gguf_raw.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "format/file_stream.h"
#include "format/gguf_bytes.h"

namespace ridge {
namespace {

constexpr auto kRawString = static_cast<uint32_t>(GgufValue::string),
               kRawArray = static_cast<uint32_t>(GgufValue::array);
// Of those value types that have one size.
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
  put(bytes, GgufValue::u32);
  put(bytes, value);
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
  const uint64_t bytes = header_bytes(tensors);
  std::string out;
  put_beginning(out, tensors.size(), entries_.size());
  for (const auto& [key, value] : entries_) {
    put_text(out, key);
    out += value;
  }
  for (const GgufTensor& t : tensors) put_tensor(out, t, t.offset - bytes);
  out.resize(bytes, '\0');
  return out;
}

}  // namespace ridge
