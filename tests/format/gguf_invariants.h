// What holds for every file that was accepted, however it came about. Shared by the property tests and the fuzzer.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "format/gguf.h"

namespace ridge::test {

// Empty, or the sentence that does not hold.
inline std::string broken_invariant(const Gguf& gguf, uint64_t file_bytes) {
  std::set<std::pair<uint64_t, uint64_t>> places;
  for (const GgufTensor& t : gguf.tensors()) {
    if (t.dims > 4 || t.elements() == 0) return "shape of " + t.name;
    if (t.cols() % type_info(t.type).block != 0) return "whole blocks in " + t.name;
    if (t.bytes != t.rows() * row_bytes(t.type, t.cols())) return "bytes of " + t.name;
    if (t.offset > file_bytes || t.bytes > file_bytes - t.offset) return "inside the file: " + t.name;
    if (gguf.find(t.name) != &t) return "found by its name: " + t.name;
    places.emplace(t.offset, t.bytes);
  }
  uint64_t end = 0;
  for (const auto& [offset, bytes] : places) {
    if (offset < end) return "no overlap";
    end = offset + bytes;
  }
  if (places.size() != gguf.tensors().size()) return "one place each";
  for (const auto& [key, value] : gguf.metadata().entries()) {
    if (gguf.metadata().find(key) != &value) return "found by its key: " + key;
    // None of these may crash, whatever the type.
    (void)gguf.metadata().uint(key);
    (void)gguf.metadata().number(key);
    (void)gguf.metadata().boolean(key);
    (void)gguf.metadata().string(key);
    (void)gguf.metadata().strings(key);
    (void)gguf.metadata().uints(key);
    (void)gguf.metadata().numbers(key);
  }
  return "";
}

}  // namespace ridge::test
