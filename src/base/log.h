// Notes for people, on stderr: stdout carries results alone.
//
//   note("io_uring is not permitted here (EPERM): reading with 4 threads instead");
//   note_once("o_direct", "…");      // said once per process and key
//   detail("…");                     // only with -v
#pragma once

#include <string_view>

namespace ridge {

enum class Verbosity { quiet, normal, verbose };

void set_verbosity(Verbosity verbosity);
Verbosity verbosity();

void note(std::string_view text);        // shown unless quiet
void detail(std::string_view text);      // shown when verbose
void warn(std::string_view text);        // always shown
void note_block(std::string_view text);  // a table or a list: its own lines, without the program's name
void note_once(std::string_view key, std::string_view text);

}  // namespace ridge
