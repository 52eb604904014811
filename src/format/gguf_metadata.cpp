// The metadata half of GgufReader: entries and their values.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "base/units.h"
#include "format/gguf_bytes.h"
#include "format/gguf_reader.h"
#include "format/quote.h"

namespace ridge {
namespace {

constexpr uint64_t kLongestKey = 65'535;
constexpr uint64_t kAnyLength = std::numeric_limits<uint64_t>::max();  // up to the end of the file

constexpr uint64_t kLargestInt64 = std::numeric_limits<int64_t>::max();

// Below 2^63 every integer is an int64, so that callers meet one type.
MetadataValue integer(uint64_t n) {
  if (n > kLargestInt64) return MetadataValue(std::in_place_type<uint64_t>, n);
  return MetadataValue(std::in_place_type<int64_t>, static_cast<int64_t>(n));
}

MetadataValue signed_integer(int64_t n) { return MetadataValue(std::in_place_type<int64_t>, n); }

}  // namespace

Result<void> GgufReader::read_metadata() {
  for (uint64_t i = 0; i < entry_count_; ++i) {
    place_ = {.section = "metadata entry", .index = i, .count = entry_count_, .name = {}};
    std::string key = RIDGE_TRY(read_string(kLongestKey, "bytes of a key"));
    if (key.empty()) return damaged("has an empty key");
    place_.name = key;
    uint32_t type = RIDGE_TRY(read_as<uint32_t>());
    MetadataValue value = RIDGE_TRY(read_value(type));
    bool inserted = out_.metadata_.entries().emplace(std::move(key), std::move(value)).second;
    if (!inserted) return damaged("has the key of an earlier entry");
  }
  return {};
}

Result<MetadataValue> GgufReader::read_value(uint32_t type) {
  switch (static_cast<GgufValue>(type)) {
    case GgufValue::u8:
      return integer(RIDGE_TRY(read_as<uint8_t>()));
    case GgufValue::i8:
      return signed_integer(RIDGE_TRY(read_as<int8_t>()));
    case GgufValue::u16:
      return integer(RIDGE_TRY(read_as<uint16_t>()));
    case GgufValue::i16:
      return signed_integer(RIDGE_TRY(read_as<int16_t>()));
    case GgufValue::u32:
      return integer(RIDGE_TRY(read_as<uint32_t>()));
    case GgufValue::i32:
      return signed_integer(RIDGE_TRY(read_as<int32_t>()));
    case GgufValue::f32:
      return MetadataValue(std::in_place_type<double>, RIDGE_TRY(read_as<float>()));
    case GgufValue::boolean:
      return read_bool();
    case GgufValue::string:
      return MetadataValue(RIDGE_TRY(read_string(kAnyLength, "bytes of a string")));
    case GgufValue::array:
      return MetadataValue(RIDGE_TRY(read_array()));
    case GgufValue::u64:
      return integer(RIDGE_TRY(read_as<uint64_t>()));
    case GgufValue::i64:
      return signed_integer(RIDGE_TRY(read_as<int64_t>()));
    case GgufValue::f64:
      return MetadataValue(std::in_place_type<double>, RIDGE_TRY(read_as<double>()));
    default:
      return damaged(fmt::format("has a value of type {}, expected 0 to 12", type));
  }
}

Result<MetadataValue> GgufReader::read_bool() {
  auto byte = RIDGE_TRY(read_as<uint8_t>());
  if (byte > 1) return damaged(fmt::format("holds {} as a boolean, expected 0 or 1", byte));
  return MetadataValue(std::in_place_type<bool>, byte == 1);
}

Result<MetadataArray> GgufReader::read_array() {
  uint32_t type = RIDGE_TRY(read_as<uint32_t>());
  uint64_t count = RIDGE_TRY(read_as<uint64_t>());
  switch (static_cast<GgufValue>(type)) {
    case GgufValue::u8:
      return read_numbers<uint8_t, int32_t>(count);
    case GgufValue::i8:
      return read_numbers<int8_t, int32_t>(count);
    case GgufValue::u16:
      return read_numbers<uint16_t, int32_t>(count);
    case GgufValue::i16:
      return read_numbers<int16_t, int32_t>(count);
    case GgufValue::u32:
      return read_numbers<uint32_t, int64_t>(count);
    case GgufValue::i32:
      return read_numbers<int32_t, int32_t>(count);
    case GgufValue::f32:
      return read_numbers<float, float>(count);
    case GgufValue::boolean:
      return read_numbers<bool, int32_t>(count);
    case GgufValue::string:
      return read_strings(count);
    case GgufValue::array:
      return damaged("is an array of arrays, which no model needs");
    case GgufValue::u64:
      return read_numbers<uint64_t, int64_t>(count);
    case GgufValue::i64:
      return read_numbers<int64_t, int64_t>(count);
    case GgufValue::f64:
      return read_numbers<double, double>(count);
    default:
      return damaged(fmt::format("is an array of type {}, expected 0 to 12", type));
  }
}

Result<MetadataArray> GgufReader::read_strings(uint64_t count) {
  constexpr uint64_t kLengthBytes = 8;
  RIDGE_TRY(check_claim(count, kLengthBytes, "strings"));
  StringPool pool;
  // Pieces of a vocabulary have about 8 bytes each; the text is at most what follows the lengths.
  pool.reserve(static_cast<size_t>(count),
               static_cast<size_t>(std::min(count * 8, in_.remaining() - count * kLengthBytes)));
  std::string text;
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t length = RIDGE_TRY(read_as<uint64_t>());
    RIDGE_TRY(check_claim(length, 1, "bytes of a string"));
    text.resize(static_cast<size_t>(length));
    RIDGE_TRY(in_.read(text.data(), text.size()));
    pool.push_back(text);
  }
  pool.shrink_to_fit();
  return MetadataArray(std::move(pool));
}

template <class Stored, class Kept>
Result<MetadataArray> GgufReader::read_numbers(uint64_t count) {
  // A boolean is read as its byte: any other byte in a `bool` would be undefined.
  using Raw = std::conditional_t<std::is_same_v<Stored, bool>, uint8_t, Stored>;
  RIDGE_TRY(check_claim(count, sizeof(Raw), "array elements"));
  std::vector<Kept> numbers(static_cast<size_t>(count));
  if constexpr (std::is_same_v<Raw, Kept>) {
    RIDGE_TRY(in_.read(numbers.data(), numbers.size() * sizeof(Kept)));
  } else {
    std::array<Raw, 1024> piece;
    for (size_t done = 0; done < numbers.size();) {
      size_t n = std::min(piece.size(), numbers.size() - done);
      RIDGE_TRY(in_.read(piece.data(), n * sizeof(Raw)));
      for (size_t i = 0; i < n; ++i) {
        if constexpr (std::is_same_v<Stored, bool>) {
          if (piece[i] > 1) return damaged(fmt::format("holds {} as a boolean, expected 0 or 1", piece[i]));
        }
        if constexpr (std::is_same_v<Stored, uint64_t>) {
          if (piece[i] > kLargestInt64) {
            return damaged(fmt::format("holds {}; numbers in arrays must be below 2^63", format_count(piece[i])));
          }
        }
        numbers[done + i] = static_cast<Kept>(piece[i]);
      }
      done += n;
    }
  }
  return MetadataArray(std::move(numbers));
}

Result<uint64_t> GgufReader::read_alignment() const {
  constexpr uint64_t kDefault = 32;
  uint64_t alignment = RIDGE_TRY(out_.metadata_.uint("general.alignment")).value_or(kDefault);
  if (!std::has_single_bit(alignment)) {
    return bad_input(
        fmt::format("{}: metadata key 'general.alignment' is {}, expected a power of two: the file is damaged; "
                    "fetch it again",
                    in_.name(), format_count(alignment)));
  }
  return alignment;
}

}  // namespace ridge
