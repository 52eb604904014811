#include "cli/window_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>

namespace ridge::cli {

void add_window_flags(CLI::App& command, WindowFlags& flags) {
  command.add_option("--window", flags.window, "tokens read at a time")->type_name("N")->capture_default_str();
  CLI::Option* most = command.add_option("--windows", flags.windows, "of each text at most this many");
  most->type_name("N");
  if (flags.windows) most->default_str(std::to_string(*flags.windows));
}

Result<WindowOptions> window_options(const WindowFlags& flags) {
  constexpr int64_t kLeast = 4, kMost = 1 << 20;
  if (flags.window < kLeast || flags.window > kMost) {
    return usage_error(fmt::format("--window {} is no usable number: give {} to {}", flags.window, kLeast, kMost));
  }
  if (flags.windows && *flags.windows < 1) {
    return usage_error(fmt::format("--windows {} is no usable number: give 1 or more", *flags.windows));
  }
  WindowOptions options{.window = static_cast<uint32_t>(flags.window)};
  if (flags.windows) options.most_windows = static_cast<uint64_t>(*flags.windows);
  return options;
}

}  // namespace ridge::cli
