// Text from files and command lines made safe for a terminal: control characters are written out, so that no name can
// move the cursor, colour the screen or fake another line.
//
//   note(printable("a\x1b[2J"));      // a\x1b[2J, as these characters
#pragma once

#include <string>
#include <string_view>

namespace ridge {

// Newlines stay; other control characters (below 0x20, 0x7f, and U+0080 to U+009F) become \xNN.
std::string printable(std::string_view text);

}  // namespace ridge
