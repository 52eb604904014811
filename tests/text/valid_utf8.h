// An independent check of UTF-8 for tests.
#pragma once

#include <utf8proc.h>

#include <string_view>

namespace ridge {

inline bool is_valid_utf8(std::string_view text) {
  while (!text.empty()) {
    utf8proc_int32_t code_point;
    const auto bytes = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                        static_cast<utf8proc_ssize_t>(text.size()), &code_point);
    if (bytes <= 0) return false;
    text.remove_prefix(static_cast<size_t>(bytes));
  }
  return true;
}

}  // namespace ridge
