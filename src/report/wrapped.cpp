#include "report/wrapped.h"

#include <algorithm>

#include "base/printable.h"

namespace ridge {
namespace {

// Characters, not bytes: every byte of UTF-8 but those that continue one.
size_t columns_of(std::string_view word) {
  return static_cast<size_t>(std::count_if(word.begin(), word.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

}  // namespace

std::string wrapped(std::string_view text, size_t indent) {
  std::string out;
  size_t column = indent;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find_first_of(" \n", at), text.size());
    const std::string word = printable(text.substr(at, end - at));
    const size_t width = columns_of(word);
    if (column > indent && column + 1 + width > kTerminalWidth) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    }
    if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += width;
    at = std::min(text.find_first_not_of(" \n", end), text.size());
  }
  return out;
}

}  // namespace ridge
