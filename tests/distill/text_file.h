// A text as a file of a test's folder.
#pragma once

#include <string>
#include <string_view>

#include "tests/temp_folder.h"

namespace ridge::test {

// Its path.
inline std::string text_file(const TempFolder& folder, const std::string& name, std::string_view text) {
  write_file(folder / name, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  return folder / name;
}

}  // namespace ridge::test
