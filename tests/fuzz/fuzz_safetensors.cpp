// Any bytes as a safetensors file: refused, or sound. Good seeds are headers with the data they name.
#include <cstdint>

#include "base/check.h"
#include "format/safetensors.h"
#include "tests/format/safetensors_invariants.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto file = ridge::parse_safetensors({data, size}, "fuzz.safetensors");
  if (file.ok()) RIDGE_CHECK(ridge::test::broken_invariant(file.value(), size).empty(), "an accepted file is sound");
  return 0;
}
