// What holds for every safetensors file that was accepted. Shared by the property tests and the fuzzer.
#pragma once

#include <string>

#include "format/safetensors.h"

namespace ridge::test {

// Empty, or the sentence that does not hold.
inline std::string broken_invariant(const Safetensors& file, uint64_t file_bytes) {
  uint64_t end = file.tensors().empty() ? file_bytes : file.tensors().front().offset;
  for (const SafeTensor& t : file.tensors()) {
    if (t.dims > t.shape.size()) return "dimensions of " + t.name;
    uint64_t elements = 1;
    for (uint64_t n : t.dimensions()) elements *= n;
    if (elements != t.elements() || t.bytes != elements * bytes_of(t.type)) return "bytes of " + t.name;
    if (t.offset != end) return "no hole and no overlap before " + t.name;
    end += t.bytes;
    if (file.find(t.name) != &t) return "found by its name: " + t.name;
  }
  return end == file_bytes ? "" : "the data end with the file";
}

}  // namespace ridge::test
