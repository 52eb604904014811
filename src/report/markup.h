// Text inside SVG and HTML.
//
//   page += "<td>" + markup(model.name) + "</td>";
#pragma once

#include <string>
#include <string_view>

namespace ridge {

// The text with what has a meaning there, as content and within double quotes, replaced: & < > ".
std::string markup(std::string_view text);

}  // namespace ridge
