// Names out of files, made safe for one line of an error message: a hostile file must not move the reader's cursor.
//
// Not for text that people wrote as text (prompts, templates): everything outside printable ASCII is escaped.
//
//   in_quotes("blk.0.attn_q.weight")   // 'blk.0.attn_q.weight'
//   in_quotes("a\x1b[2J")              // 'a\x1b[2J', written out
//   in_quotes(very_long_name)          // the first 96 characters, then …
#pragma once

#include <string>
#include <string_view>

namespace ridge {

std::string in_quotes(std::string_view name);

}  // namespace ridge
