// The pieces that GGUF files are made of, for what writes and reads them: numbers of value types, and how numbers,
// texts and entries of the tensor list are laid down. Internal to format/; callers use gguf.h, gguf_writer.h and
// gguf_raw.h.
//
//   put_text(out, "general.name");
//   put(out, GgufValue::string);
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "format/gguf.h"

namespace ridge {

// Numbers as in the format.
enum class GgufValue : uint32_t {
  u8 = 0,
  i8 = 1,
  u16 = 2,
  i16 = 3,
  u32 = 4,
  i32 = 5,
  f32 = 6,
  boolean = 7,
  string = 8,
  array = 9,
  u64 = 10,
  i64 = 11,
  f64 = 12,
};

// Little-endian, as every machine is that Ridge runs on.
template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

inline void put_text(std::string& out, std::string_view text) {
  put<uint64_t>(out, text.size());
  out.append(text);
}

// What a file begins with. Version 2 differs in nothing but big-endian files.
inline void put_beginning(std::string& out, uint64_t tensors, uint64_t entries) {
  out += "GGUF";
  put(out, uint32_t{3});
  put(out, tensors);
  put(out, entries);
}

// `offset`: from the end of the padded header.
inline void put_tensor(std::string& out, const GgufTensor& t, uint64_t offset) {
  put_text(out, t.name);
  put(out, t.dims);
  for (uint32_t d = 0; d < t.dims; ++d) put(out, t.shape[d]);
  put(out, static_cast<uint32_t>(t.type));
  put(out, offset);
}

}  // namespace ridge
