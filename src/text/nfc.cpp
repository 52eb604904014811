#include "text/nfc.h"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

#include "text/unicode.h"

namespace ridge {

std::string to_nfc(std::string_view text) {
  const bool ascii = std::all_of(text.begin(), text.end(), [](char c) { return static_cast<uint8_t>(c) < 0x80; });
  if (ascii) return std::string(text);
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  const auto length = static_cast<utf8proc_ssize_t>(text.size());
  const utf8proc_ssize_t needed = utf8proc_decompose(bytes, length, nullptr, 0, options);
  if (needed < 0) return std::string(text);
  std::vector<utf8proc_int32_t> characters(static_cast<size_t>(needed) + 1);
  utf8proc_decompose(bytes, length, characters.data(), needed, options);
  const utf8proc_ssize_t composed = utf8proc_normalize_utf32(characters.data(), needed, options);
  std::string out;
  out.reserve(text.size());
  for (utf8proc_ssize_t i = 0; i < composed; ++i)
    append_utf8(static_cast<uint32_t>(characters[static_cast<size_t>(i)]), out);
  return out;
}

}  // namespace ridge
