// Writing safetensors: the header first, as all sizes are known, then tensor after tensor.
#include <fmt/format.h>

#include <bit>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "format/safetensors.h"

namespace ridge {
namespace {

uint64_t bytes_of(const SafetensorsWriter::Item& item) {
  uint64_t bytes = ridge::bytes_of(item.type);
  for (uint64_t n : item.shape) bytes *= n;
  return bytes;
}

// One entry after another, in the order of the data; spaces up to a multiple of 8, as the reference writes it.
std::string header_of(const std::vector<SafetensorsWriter::Item>& items) {
  std::string text = "{";
  uint64_t offset = 0;
  for (const SafetensorsWriter::Item& item : items) {
    const uint64_t bytes = bytes_of(item);
    text += fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                        text.size() == 1 ? "" : ",", nlohmann::json(item.name).dump(), name_of(item.type),
                        fmt::join(item.shape, ","), offset, offset + bytes);
    offset += bytes;
  }
  text += "}";
  text.resize(round_up(text.size(), 8), ' ');
  return text;
}

}  // namespace

Result<SafetensorsWriter> SafetensorsWriter::create(const std::string& path, std::vector<Item> items) {
  static_assert(std::endian::native == std::endian::little);
  OutputFile file = RIDGE_TRY(OutputFile::create(path));
  const std::string header = header_of(items);
  uint64_t bytes = 0;
  for (const Item& item : items) bytes += bytes_of(item);
  const uint64_t length = header.size();
  RIDGE_TRY(file.preallocate(sizeof length + length + bytes));
  RIDGE_TRY(file.write({reinterpret_cast<const uint8_t*>(&length), sizeof length}));
  RIDGE_TRY(file.write(header));
  return SafetensorsWriter(std::move(file), std::move(items));
}

Result<void> SafetensorsWriter::append_bytes(SafeType type, std::span<const uint8_t> bytes) {
  RIDGE_CHECK(next_ < items_.size() && items_[next_].type == type && bytes_of(items_[next_]) == bytes.size(),
              "tensors come in the order and size of the list");
  ++next_;
  return file_.write(bytes);
}

Result<void> SafetensorsWriter::append(std::span<const float> values) {
  return append_bytes(SafeType::F32, {reinterpret_cast<const uint8_t*>(values.data()), values.size_bytes()});
}

Result<void> SafetensorsWriter::append(std::span<const int32_t> values) {
  return append_bytes(SafeType::I32, {reinterpret_cast<const uint8_t*>(values.data()), values.size_bytes()});
}

Result<void> SafetensorsWriter::finish() {
  RIDGE_CHECK(next_ == items_.size(), "all tensors have come");
  return file_.commit();
}

}  // namespace ridge
