// Builds GGUF files in memory for tests, right ones and wrong ones: every field can be overridden.
//
//   GgufBuilder gguf;
//   gguf.string("general.architecture", "llama").number<uint32_t>("llama.block_count", 2);
//   gguf.tensor({.name = "output.weight", .shape = {32, 4}, .type = Type::Q8_0});
//   Gguf file = parse_gguf(gguf.build(), "test.gguf").value();
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "tensor/types.h"

namespace ridge::test {

using Bytes = std::vector<uint8_t>;

// Numbers of value types as in the format.
enum class ValueType : uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };

template <class T>
constexpr ValueType value_type() {
  if constexpr (std::is_same_v<T, bool>) return ValueType::boolean;
  if constexpr (std::is_same_v<T, uint8_t>) return ValueType::u8;
  if constexpr (std::is_same_v<T, int8_t>) return ValueType::i8;
  if constexpr (std::is_same_v<T, uint16_t>) return ValueType::u16;
  if constexpr (std::is_same_v<T, int16_t>) return ValueType::i16;
  if constexpr (std::is_same_v<T, uint32_t>) return ValueType::u32;
  if constexpr (std::is_same_v<T, int32_t>) return ValueType::i32;
  if constexpr (std::is_same_v<T, uint64_t>) return ValueType::u64;
  if constexpr (std::is_same_v<T, int64_t>) return ValueType::i64;
  if constexpr (std::is_same_v<T, float>) return ValueType::f32;
  if constexpr (std::is_same_v<T, double>) return ValueType::f64;
}

template <class T>
void append(Bytes& out, T value) {
  static_assert(std::is_arithmetic_v<T>);
  size_t at = out.size();
  out.resize(at + sizeof value);
  std::memcpy(out.data() + at, &value, sizeof value);
}

inline void append_string(Bytes& out, std::string_view text) {
  append<uint64_t>(out, text.size());
  out.insert(out.end(), text.begin(), text.end());
}

struct BuilderTensor {
  std::string name;
  std::vector<uint64_t> shape;  // row length first
  Type type = Type::F32;
  std::optional<uint32_t> type_number = {};  // instead of `type`
  std::optional<uint32_t> dims = {};         // instead of shape.size()
  std::optional<uint64_t> offset = {};       // instead of the next free place
  std::optional<Bytes> data = {};            // default: a pattern of the right size
};

class GgufBuilder {
 public:
  uint32_t version = 3;
  std::string magic = "GGUF";
  uint64_t alignment = 32;  // of the data; does not write general.alignment
  std::optional<uint64_t> tensor_count = {}, entry_count = {};

  // An entry whose value is any bytes.
  GgufBuilder& raw(std::string_view key, uint32_t type, const Bytes& value) {
    append_string(entries_, key);
    append<uint32_t>(entries_, type);
    entries_.insert(entries_.end(), value.begin(), value.end());
    ++entries_written_;
    return *this;
  }

  template <class T>
  GgufBuilder& number(std::string_view key, T value) {
    Bytes bytes;
    append<T>(bytes, value);
    return raw(key, static_cast<uint32_t>(value_type<T>()), bytes);
  }

  GgufBuilder& string(std::string_view key, std::string_view value) {
    Bytes bytes;
    append_string(bytes, value);
    return raw(key, static_cast<uint32_t>(ValueType::string), bytes);
  }

  template <class T>
  GgufBuilder& numbers(std::string_view key, const std::vector<T>& values) {
    Bytes bytes = array_head(value_type<T>(), values.size());
    for (T value : values) append<T>(bytes, value);
    return raw(key, static_cast<uint32_t>(ValueType::array), bytes);
  }

  GgufBuilder& strings(std::string_view key, const std::vector<std::string>& values) {
    Bytes bytes = array_head(ValueType::string, values.size());
    for (const std::string& value : values) append_string(bytes, value);
    return raw(key, static_cast<uint32_t>(ValueType::array), bytes);
  }

  GgufBuilder& tensor(BuilderTensor tensor) {
    tensors_.push_back(std::move(tensor));
    return *this;
  }

  // Where the data section of build() begins.
  uint64_t data_begin() const { return (head().size() + alignment - 1) / alignment * alignment; }
  // Bytes of header, metadata and list of tensors.
  uint64_t head_bytes() const { return head().size(); }

  Bytes build() const {
    Bytes out = head();
    if (tensors_.empty()) return out;
    out.resize(data_begin());
    for (const BuilderTensor& t : tensors_) {
      Bytes data = t.data.value_or(pattern(data_bytes(t)));
      out.resize((out.size() + alignment - 1) / alignment * alignment);
      out.insert(out.end(), data.begin(), data.end());
    }
    return out;
  }

 private:
  static Bytes array_head(ValueType type, uint64_t count) {
    Bytes bytes;
    append<uint32_t>(bytes, static_cast<uint32_t>(type));
    append<uint64_t>(bytes, count);
    return bytes;
  }

  static Bytes pattern(uint64_t bytes) {
    Bytes out(bytes);
    for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<uint8_t>(i * 37 + 11);
    return out;
  }

  static uint64_t data_bytes(const BuilderTensor& t) {
    if (t.data) return t.data->size();
    uint64_t elements = 1;
    for (uint64_t d : t.shape) elements *= d;
    const TypeInfo& info = type_info(t.type);
    return elements / info.block * info.bytes;
  }

  Bytes head() const {
    Bytes out(magic.begin(), magic.end());
    append<uint32_t>(out, version);
    append<uint64_t>(out, tensor_count.value_or(tensors_.size()));
    append<uint64_t>(out, entry_count.value_or(entries_written_));
    out.insert(out.end(), entries_.begin(), entries_.end());
    uint64_t next = 0;
    for (const BuilderTensor& t : tensors_) {
      append_string(out, t.name);
      append<uint32_t>(out, t.dims.value_or(static_cast<uint32_t>(t.shape.size())));
      for (uint64_t d : t.shape) append<uint64_t>(out, d);
      append<uint32_t>(out, t.type_number.value_or(static_cast<uint32_t>(t.type)));
      append<uint64_t>(out, t.offset.value_or(next));
      next = (next + data_bytes(t) + alignment - 1) / alignment * alignment;
    }
    return out;
  }

  Bytes entries_;
  uint64_t entries_written_ = 0;
  std::vector<BuilderTensor> tensors_;
};

}  // namespace ridge::test
