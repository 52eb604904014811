// Unicode's normalisation form C (UAX 15): composed characters where there are any. Some tokenizers ask for it.
//
//   to_nfc("e\u0301")      // "é", one character
#pragma once

#include <string>
#include <string_view>

namespace ridge {

// A text that is no UTF-8 comes back as it is: there is nothing to compose in it.
std::string to_nfc(std::string_view text);

}  // namespace ridge
