// Any bytes as an IR: refused, or written again as they were. A good seed is what `ridge ir` writes.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "program/ir.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ridge;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto ir = read_ir(text, "fuzz.ir");
  if (ir.ok()) {
    RIDGE_CHECK(ir_text(ir.value()) == text, "what is read is what is written");
  } else {
    RIDGE_CHECK(ir.error().code == ErrorCode::bad_input, "a file fails as input");
  }
  return 0;
}
