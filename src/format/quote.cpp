#include "format/quote.h"

#include <fmt/format.h>

#include <iterator>

namespace ridge {

std::string in_quotes(std::string_view name) {
  constexpr size_t kShown = 96;
  std::string out = "'";
  for (char c : name.substr(0, kShown)) {
    auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      out.push_back(c);
    } else {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", byte);
    }
  }
  if (name.size() > kShown) out += "…";
  out.push_back('\'');
  return out;
}

}  // namespace ridge
