// Base64 (RFC 4648, section 4), as JSON files carry bytes.
//
//   std::optional<std::string> bytes = decode_base64("aGk=");      // "hi"
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ridge {

// nullopt for another alphabet, a length that is no multiple of four, or padding that is not at the end.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace ridge
