#include "base/number_list.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

namespace ridge {
namespace {

constexpr uint64_t kLargest = uint64_t{1} << 32;
constexpr size_t kMostNumbers = 1000;

struct Progression {
  uint64_t first = 0, last = 0, step = 1;
  bool multiplies = false;  // by `step`, else adds it
};

// A number at the front of `text`, which it is taken from.
std::optional<uint64_t> take_number(std::string_view& text) {
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value > kLargest) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

// nullopt: not understood.
std::optional<Progression> parse_range(std::string_view part) {
  auto first = take_number(part);
  if (!first) return std::nullopt;
  Progression range{.first = *first, .last = *first};
  if (take(part, '-')) {
    auto last = take_number(part);
    if (!last) return std::nullopt;
    range.last = *last;
    range.multiplies = part.starts_with('*');
    if (take(part, '+') || take(part, '*')) {
      auto step = take_number(part);
      if (!step) return std::nullopt;
      range.step = *step;
    }
  }
  // A range that never reaches its end, or begins behind it, is a mistake.
  bool moves = range.multiplies ? range.step > 1 && range.first > 0 : range.step > 0;
  if (!part.empty() || range.last < range.first || !moves) return std::nullopt;
  return range;
}

}  // namespace

Result<std::vector<uint64_t>> parse_numbers(std::string_view text, std::string_view flag) {
  std::vector<uint64_t> numbers;
  std::string_view rest = text;
  for (bool more = true; more;) {
    size_t comma = rest.find(',');
    more = comma != std::string_view::npos;
    auto range = parse_range(rest.substr(0, comma));
    if (!range) {
      return usage_error(
          fmt::format("{} '{}' is no list of numbers: write 1,2 or 1-4 or 0-512+128 or 128-1024*2", flag, text));
    }
    rest.remove_prefix(more ? comma + 1 : rest.size());
    for (uint64_t n = range->first; n <= range->last; n = range->multiplies ? n * range->step : n + range->step) {
      if (numbers.size() == kMostNumbers) {
        return usage_error(fmt::format("{} '{}' has more than {} numbers: leave some out", flag, text, kMostNumbers));
      }
      numbers.push_back(n);
    }
  }
  return numbers;
}

}  // namespace ridge
