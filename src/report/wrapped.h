// Sentences in lines that fit a terminal of 80 columns.
//
//   text += "  " + wrapped(reason, 4) + "\n";      // further lines are indented by 4
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ridge {

constexpr size_t kTerminalWidth = 80;

// Breaks at blanks so that a line that begins at column `indent` is not longer than the terminal; further lines are
// indented by as much. A word longer than a line stays whole. What is not printable is escaped.
std::string wrapped(std::string_view text, size_t indent);

}  // namespace ridge
