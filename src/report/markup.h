// Text inside SVG and HTML.
//
//   page += "<td>" + markup(model.name) + "</td>";
#pragma once

#include <string>
#include <string_view>

namespace ridge {

// The text with what has a meaning there, as content and within double quotes, replaced: & < > ". What is no UTF-8
// becomes U+FFFD, control characters, which HTML does not allow, become spaces.
std::string markup(std::string_view text);

}  // namespace ridge
