// Any bytes as a GGUF file: refused, or sound. Good seeds are small models and vocabularies.
#include <cstdint>

#include "base/check.h"
#include "format/gguf.h"
#include "tests/format/gguf_invariants.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ridge::Result<ridge::Gguf> gguf = ridge::parse_gguf({data, size}, "fuzz.gguf");
  if (gguf.ok()) RIDGE_CHECK(ridge::test::broken_invariant(gguf.value(), size).empty(), "an accepted file is sound");
  return 0;
}
