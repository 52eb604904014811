#include "format/gguf_writer.h"

#include <algorithm>
#include <type_traits>

namespace ridge {
namespace {

// Numbers of value types as in the format.
enum class ValueType : uint32_t {
  u32 = 4,
  i32 = 5,
  f32 = 6,
  boolean = 7,
  string = 8,
  array = 9,
  u64 = 10,
  i64 = 11,
  f64 = 12
};

template <class T>
constexpr ValueType value_type() {
  if constexpr (std::is_same_v<T, bool>) return ValueType::boolean;
  if constexpr (std::is_same_v<T, uint32_t>) return ValueType::u32;
  if constexpr (std::is_same_v<T, int32_t>) return ValueType::i32;
  if constexpr (std::is_same_v<T, float>) return ValueType::f32;
  if constexpr (std::is_same_v<T, uint64_t>) return ValueType::u64;
  if constexpr (std::is_same_v<T, int64_t>) return ValueType::i64;
  if constexpr (std::is_same_v<T, double>) return ValueType::f64;
}

// Little-endian, as every machine is that Ridge runs on.
template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put_text(std::string& out, std::string_view text) {
  put<uint64_t>(out, text.size());
  out.append(text);
}

template <class T>
void put_array(std::string& out, const std::vector<T>& values) {
  put(out, value_type<T>());
  put<uint64_t>(out, values.size());
  for (T value : values) put(out, value);
}

void put_array(std::string& out, const StringPool& texts) {
  put(out, ValueType::string);
  put<uint64_t>(out, texts.size());
  for (size_t i = 0; i < texts.size(); ++i) put_text(out, texts[i]);
}

struct PutValue {
  std::string& out;
  void operator()(const std::string& text) const {
    put(out, ValueType::string);
    put_text(out, text);
  }
  void operator()(const MetadataArray& array) const {
    put(out, ValueType::array);
    std::visit([&](const auto& values) { put_array(out, values); }, array);
  }
  // llama.cpp asks for numbers of 32 bits by type, so those that lose nothing are written as such.
  void operator()(int64_t number) const {
    const auto narrow = static_cast<uint32_t>(number);
    narrow == number ? put_number(narrow) : put_number(number);
  }
  void operator()(double number) const {
    const auto narrow = static_cast<float>(number);
    static_cast<double>(narrow) == number ? put_number(narrow) : put_number(number);
  }
  template <class T>
  void operator()(T number) const {
    put_number(number);
  }
  template <class T>
  void put_number(T number) const {
    put(out, value_type<T>());
    put(out, number);
  }
};

uint64_t aligned(uint64_t bytes) { return (bytes + kGgufAlignment - 1) / kGgufAlignment * kGgufAlignment; }

}  // namespace

std::string gguf_header(const Metadata& metadata, std::vector<GgufTensor>& tensors, const GgufHeaderOptions& options) {
  constexpr std::string_view kAlignment = "general.alignment";
  constexpr uint32_t kVersion = 3;
  std::string out = "GGUF";
  put(out, kVersion);
  put<uint64_t>(out, tensors.size());
  put<uint64_t>(out, metadata.entries().size() - (metadata.find(kAlignment) != nullptr ? 1 : 0));
  for (const auto& [key, value] : metadata.entries()) {
    if (key == kAlignment) continue;
    put_text(out, key);
    const auto* number = std::get_if<uint64_t>(&value);
    if (number != nullptr && std::count(options.narrow.begin(), options.narrow.end(), key) > 0) {
      put(out, ValueType::u32);
      put(out, static_cast<uint32_t>(*number));
    } else {
      std::visit(PutValue{out}, value);
    }
  }
  uint64_t at = 0;  // after the header
  for (GgufTensor& t : tensors) {
    put_text(out, t.name);
    put(out, t.dims);
    for (uint32_t d = 0; d < t.dims; ++d) put(out, t.shape[d]);
    put(out, static_cast<uint32_t>(t.type));
    put(out, at);
    t.bytes = t.rows() * row_bytes(t.type, t.cols());
    t.offset = at;
    t.file = 0;
    at = aligned(at + t.bytes);
  }
  out.resize(aligned(out.size()), '\0');
  for (GgufTensor& t : tensors) t.offset += out.size();
  return out;
}

}  // namespace ridge
