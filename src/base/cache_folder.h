// Where Ridge keeps what it may lose: profiles, fetched models, notes of verified packs.
//
//   std::string folder = cache_folder();        // "/home/me/.cache/ridge", or "" if this user has no place of their
//   own
#pragma once

#include <string>

namespace ridge {

// $XDG_CACHE_HOME/ridge if that is absolute (the XDG specification ignores relative ones), else ~/.cache/ridge with
// HOME or the user's entry in the password file. Empty if there is neither: never a folder that others may write to.
std::string cache_folder();

}  // namespace ridge
