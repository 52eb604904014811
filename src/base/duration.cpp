#include "base/duration.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace ridge {

Result<std::chrono::nanoseconds> parse_duration(std::string_view text, std::string_view flag) {
  struct Unit {
    std::string_view name;
    double seconds;
  };
  constexpr Unit kUnits[] = {{"", 1}, {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"min", 60}, {"h", 3600}};
  constexpr double kYear = 365.0 * 24 * 3600;
  double number = 0;
  const char* end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data(), end, number);
  const std::string_view name(rest, static_cast<size_t>(end - rest));
  for (const Unit& unit : kUnits) {
    if (error != std::errc() || name != unit.name) continue;
    const double seconds = number * unit.seconds;
    if (!std::isfinite(seconds) || seconds < 0 || seconds > kYear) break;
    return std::chrono::nanoseconds(static_cast<int64_t>(seconds * 1e9));
  }
  return usage_error(
      fmt::format("{} '{}' is no usable time: write seconds, or a number with ms, s, m or h, such as 30s", flag, text));
}

}  // namespace ridge
