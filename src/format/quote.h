// Names out of files, made safe for one line of an error message: a hostile file must not move the reader's cursor.
//
// Not for text that people wrote as text (prompts, templates): everything outside printable ASCII is escaped.
//
//   quoted("blk.0.attn_q.weight")   // 'blk.0.attn_q.weight'
//   quoted("a\x1b[2J")              // 'a\x1b[2J', written out
//   quoted(very_long_name)          // the first 96 characters, then …
#pragma once

#include <string>
#include <string_view>

namespace ridge {

std::string quoted(std::string_view name);

}  // namespace ridge
