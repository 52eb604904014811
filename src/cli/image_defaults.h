// What a bundle says about itself: the size that its model was trained for, in an optional file defaults.json.
//
//   {"size": "128x128"}
//
// Not for: what every picture has (512x512 where neither flag nor bundle says otherwise).
//
//   std::string size = RIDGE_TRY(default_size("demo/anima-mini"));      // "128x128"
#pragma once

#include <string>

#include "base/result.h"

namespace ridge::cli {

// The file's name; empty without a folder.
std::string defaults_file(const std::string& folder);
// "512x512" without a folder, or where it has no defaults.json; bad input if that file is no object with a text "size".
Result<std::string> default_size(const std::string& folder);

}  // namespace ridge::cli
