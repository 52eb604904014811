#include "base/printable.h"

#include <fmt/format.h>

namespace ridge {

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    auto byte = static_cast<unsigned char>(text[i]);
    // U+0080 … U+009F are 0xc2 0x80 … 0xc2 0x9f, and terminals obey them as well.
    bool upper = byte == 0xc2 && i + 1 < text.size() && (static_cast<unsigned char>(text[i + 1]) & 0xe0) == 0x80;
    if ((byte < 0x20 && byte != '\n') || byte == 0x7f || upper) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace ridge
