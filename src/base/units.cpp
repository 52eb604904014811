#include "base/units.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

namespace ridge {
namespace {

Error not_a_size(std::string_view text) {
  return usage_error(
      fmt::format("'{}' is not a size: write a number of bytes, or one with K, M, G or T, such as 300M", text));
}

}  // namespace

Result<uint64_t> parse_bytes(std::string_view text) {
  double number = 0;
  const char* end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || !std::isfinite(number)) return not_a_size(text);

  std::string_view unit(rest, static_cast<size_t>(end - rest));
  double scale = 1;
  if (!unit.empty() && unit != "B") {
    constexpr std::string_view kUnits = "KMGT";
    char letter = unit[0] >= 'a' && unit[0] <= 'z' ? static_cast<char>(unit[0] - 'a' + 'A') : unit[0];
    size_t power = kUnits.find(letter);
    std::string_view tail = unit.substr(1);
    if (power == std::string_view::npos || !(tail.empty() || tail == "B" || tail == "iB" || tail == "b"))
      return not_a_size(text);
    scale = std::pow(1024.0, static_cast<double>(power + 1));
  }
  double bytes = number * scale;
  if (bytes < 1) return usage_error(fmt::format("'{}' is no usable size: it must be at least one byte", text));
  if (bytes > 9e18) return usage_error(fmt::format("'{}' is more bytes than a machine can address", text));
  return static_cast<uint64_t>(bytes);
}

std::string format_bytes(uint64_t bytes) {
  if (bytes < kKiB) return fmt::format("{} B", bytes);
  constexpr std::array kNames = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < kNames.size()) {
    value /= 1024;
    ++unit;
  }
  int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f} {}", value, decimals, kNames[unit]);
}

std::string format_count(uint64_t n) {
  std::string digits = std::to_string(n), out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

std::string counted(uint64_t n, std::string_view one, std::string_view many) {
  if (n == 1) return fmt::format("1 {}", one);
  return many.empty() ? fmt::format("{} {}s", n, one) : fmt::format("{} {}", n, many);
}

}  // namespace ridge
