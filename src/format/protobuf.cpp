#include "format/protobuf.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "base/units.h"

namespace ridge {
namespace {

constexpr uint64_t kLargestFieldNumber = (uint64_t{1} << 29) - 1;

std::string_view name_of(WireType type) {
  switch (type) {
    case WireType::varint:
      return "a varint";
    case WireType::fixed64:
      return "eight bytes";
    case WireType::bytes:
      return "a string";
    case WireType::fixed32:
      return "four bytes";
  }
  return "nothing known";
}

}  // namespace

Error ProtobufReader::damaged(std::string_view problem) const {
  return bad_input(fmt::format("{}: {}: the file is damaged; fetch it again", name_, problem), offset_ + at_);
}

Error ProtobufReader::cut_short() const {
  return bad_input(
      fmt::format("{}: the message at {} ends at {}, inside a field: the file is cut short; fetch it again", name_,
                  format_count(offset_), format_count(offset_ + message_.size())),
      offset_ + at_);
}

Result<uint64_t> ProtobufReader::varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (done()) return cut_short();
    const uint8_t byte = message_[at_++];
    const uint64_t bits = byte & 0x7F;
    if (shift == 63 && bits > 1) return damaged("a number of more than 64 bits");
    value |= bits << shift;
    if (byte < 0x80) return value;
  }
  return damaged("a number of more than ten bytes");
}

Result<uint64_t> ProtobufReader::fixed(size_t bytes) {
  if (message_.size() - at_ < bytes) return cut_short();
  static_assert(std::endian::native == std::endian::little);
  uint64_t value = 0;
  std::memcpy(&value, message_.data() + at_, bytes);
  at_ += bytes;
  return value;
}

Result<ProtobufField> ProtobufReader::next() {
  RIDGE_CHECK(!done(), "next() comes before done()");
  ProtobufField field{.offset = offset_ + at_};
  const uint64_t tag = RIDGE_TRY(varint());
  if (tag >> 3 == 0 || tag >> 3 > kLargestFieldNumber) {
    return damaged(fmt::format("field number {}, expected 1 to {}", tag >> 3, kLargestFieldNumber));
  }
  field.number = static_cast<uint32_t>(tag >> 3);
  field.type = static_cast<WireType>(tag & 7);
  switch (field.type) {
    case WireType::varint:
      field.value = RIDGE_TRY(varint());
      return field;
    case WireType::fixed64:
      field.value = RIDGE_TRY(fixed(8));
      return field;
    case WireType::fixed32:
      field.value = RIDGE_TRY(fixed(4));
      return field;
    case WireType::bytes: {
      const uint64_t length = RIDGE_TRY(varint());
      if (length > message_.size() - at_) {
        return bad_input(fmt::format("{}: field {} claims {} bytes, but only {} follow: the file is cut short or "
                                     "damaged; fetch it again",
                                     name_, field.number, format_count(length), format_count(message_.size() - at_)),
                         field.offset);
      }
      field.content = offset_ + at_;
      field.bytes = message_.subspan(at_, static_cast<size_t>(length));
      at_ += field.bytes.size();
      return field;
    }
  }
  return damaged(fmt::format("field {} has wire type {}, expected 0, 1, 2 or 5", field.number, tag & 7));
}

Result<void> ProtobufReader::expect(const ProtobufField& field, WireType type, std::string_view what) const {
  if (field.type == type) return {};
  return bad_input(fmt::format("{}: {} (field {}) is stored as {}, expected {}: the file is damaged; fetch it again",
                               name_, what, field.number, name_of(field.type), name_of(type)),
                   field.offset);
}

Result<int64_t> ProtobufReader::integer(const ProtobufField& field, std::string_view what) const {
  RIDGE_TRY(expect(field, WireType::varint, what));
  return static_cast<int64_t>(field.value);
}

Result<bool> ProtobufReader::boolean(const ProtobufField& field, std::string_view what) const {
  RIDGE_TRY(expect(field, WireType::varint, what));
  return field.value != 0;
}

Result<float> ProtobufReader::float32(const ProtobufField& field, std::string_view what) const {
  RIDGE_TRY(expect(field, WireType::fixed32, what));
  return std::bit_cast<float>(static_cast<uint32_t>(field.value));
}

Result<std::span<const uint8_t>> ProtobufReader::bytes(const ProtobufField& field, std::string_view what) const {
  RIDGE_TRY(expect(field, WireType::bytes, what));
  return field.bytes;
}

Result<std::string_view> ProtobufReader::string(const ProtobufField& field, std::string_view what) const {
  RIDGE_TRY(expect(field, WireType::bytes, what));
  return std::string_view(reinterpret_cast<const char*>(field.bytes.data()), field.bytes.size());
}

}  // namespace ridge
