// --window and --windows of the commands that read texts in windows (analyze/quality.h).
//
//   add_window_flags(*command, flags->windows);
//   const WindowOptions windows = RIDGE_TRY(window_options(flags.windows));
#pragma once

#include <cstdint>
#include <optional>

#include "analyze/quality.h"
#include "base/result.h"

namespace CLI {
class App;
}

namespace ridge::cli {

struct WindowFlags {
  int64_t window = 256;                // tokens
  std::optional<int64_t> windows = 8;  // of a text at most; none: all
};
// The defaults are those that the flags have by now.
void add_window_flags(CLI::App& command, WindowFlags& flags);
// Usage error: numbers of no use.
Result<WindowOptions> window_options(const WindowFlags& flags);

}  // namespace ridge::cli
