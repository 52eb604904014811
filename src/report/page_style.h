// How pages of tables and charts begin, light and dark by the reader's preference, without anything from elsewhere.
//
//   std::string page = page_begin("Ridge claims") + "<h1>…</h1>…</body></html>\n";
#pragma once

#include <string>
#include <string_view>

namespace ridge {

// Up to and with <body>; classes: faint, bad, wide (scrolls sideways), phase (a row in bold), l (a cell to the left).
std::string page_begin(std::string_view title);

}  // namespace ridge
