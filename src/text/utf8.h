// Where a text stops being UTF-8 (RFC 3629: no overlong forms, no surrogates, at most U+10FFFF).
//
//   if (first_invalid_utf8(text) != std::string_view::npos) …
#pragma once

#include <string_view>

namespace ridge {

size_t first_invalid_utf8(std::string_view text);  // npos if all of it is valid

}  // namespace ridge
