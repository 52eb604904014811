#include "format/gguf_writer.h"

#include <algorithm>
#include <type_traits>

#include "format/gguf_bytes.h"

namespace ridge {
namespace {

template <class T>
constexpr GgufValue value_type() {
  if constexpr (std::is_same_v<T, bool>) return GgufValue::boolean;
  if constexpr (std::is_same_v<T, uint32_t>) return GgufValue::u32;
  if constexpr (std::is_same_v<T, int32_t>) return GgufValue::i32;
  if constexpr (std::is_same_v<T, float>) return GgufValue::f32;
  if constexpr (std::is_same_v<T, uint64_t>) return GgufValue::u64;
  if constexpr (std::is_same_v<T, int64_t>) return GgufValue::i64;
  if constexpr (std::is_same_v<T, double>) return GgufValue::f64;
}

template <class T>
void put_array(std::string& out, const std::vector<T>& values) {
  put(out, value_type<T>());
  put<uint64_t>(out, values.size());
  for (T value : values) put(out, value);
}

void put_array(std::string& out, const StringPool& texts) {
  put(out, GgufValue::string);
  put<uint64_t>(out, texts.size());
  for (size_t i = 0; i < texts.size(); ++i) put_text(out, texts[i]);
}

struct PutValue {
  std::string& out;
  void operator()(const std::string& text) const {
    put(out, GgufValue::string);
    put_text(out, text);
  }
  void operator()(const MetadataArray& array) const {
    put(out, GgufValue::array);
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
  std::string out;
  put_beginning(out, tensors.size(), metadata.entries().size() - (metadata.find(kAlignment) != nullptr ? 1 : 0));
  for (const auto& [key, value] : metadata.entries()) {
    if (key == kAlignment) continue;
    put_text(out, key);
    const auto* number = std::get_if<uint64_t>(&value);
    if (number != nullptr && std::count(options.narrow.begin(), options.narrow.end(), key) > 0) {
      put(out, GgufValue::u32);
      put(out, static_cast<uint32_t>(*number));
    } else {
      std::visit(PutValue{out}, value);
    }
  }
  uint64_t at = 0;  // after the header
  for (GgufTensor& t : tensors) {
    put_tensor(out, t, at);
    t.bytes = t.rows() * row_bytes(t.type, t.cols());
    t.offset = at;
    t.file = 0;
    at = aligned(at + t.bytes);
  }
  out.resize(aligned(out.size()), '\0');
  for (GgufTensor& t : tensors) t.offset += out.size();
  return out;
}

uint64_t gguf_file_bytes(std::span<const GgufTensor> tensors) {
  uint64_t end = 0;
  for (const GgufTensor& t : tensors) end = std::max(end, aligned(t.offset + t.bytes));
  return end;
}

}  // namespace ridge
