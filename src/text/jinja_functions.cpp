// Functions that every template may call.
#include <array>

#include <fmt/format.h>

#include "text/jinja_builtins.h"
#include "text/jinja_operators.h"

namespace ridge::jinja {
namespace {

Result<Value> range(const Call& call) {
  const std::vector<Value>& given = call.raw.positional;
  if (given.empty() || given.size() > 3 || !call.raw.named.empty()) {
    return call.runtime.fail("'range' takes one to three integers");
  }
  std::array<int64_t, 3> numbers = {0, 0, 1};
  for (size_t i = 0; i < given.size(); ++i) {
    if (!given[i].is_integer() && !given[i].is_boolean()) {
      return call.runtime.fail(fmt::format("'range' takes integers, not {}", given[i].type_name()));
    }
    numbers[given.size() == 1 ? 1 : i] = given[i].as_integer();
  }
  const auto [start, stop, step] = numbers;
  if (step == 0) return call.runtime.fail("the step of 'range' cannot be 0");
  // Unsigned, since the distance between two 64-bit integers may not fit into one.
  const bool empty = step > 0 ? start >= stop : start <= stop;
  const uint64_t distance = step > 0 ? static_cast<uint64_t>(stop) - static_cast<uint64_t>(start)
                                     : static_cast<uint64_t>(start) - static_cast<uint64_t>(stop);
  const uint64_t stride = step > 0 ? static_cast<uint64_t>(step) : uint64_t{0} - static_cast<uint64_t>(step);
  const uint64_t count = empty ? 0 : (distance - 1) / stride + 1;
  const int64_t most = call.runtime.settings().limits.range;
  if (count > static_cast<uint64_t>(most)) {
    return call.runtime.fail(fmt::format("a range of {} numbers; at most {} are allowed", count, most));
  }
  std::vector<Value> items;
  items.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    items.push_back(
        Value::integer(static_cast<int64_t>(static_cast<uint64_t>(start) + i * static_cast<uint64_t>(step))));
  }
  RIDGE_TRY(call.runtime.charge_steps(count));
  return call.runtime.list(std::move(items));
}

// dict(a=1), dict({'a': 1}, b=2), dict([('a', 1)]).
Result<Entries> entries_from(const Call& call) {
  Entries entries;
  if (call.raw.positional.size() > 1) return call.runtime.fail("at most one dict or list of pairs, then names");
  if (!call.raw.positional.empty()) {
    const Value& source = call.raw.positional[0];
    if (source.is_dict()) {
      entries = source.entries();
    } else {
      for (const Value& pair : RIDGE_TRY(call.runtime.elements(source))) {
        const std::vector<Value> parts = RIDGE_TRY(call.runtime.elements(pair));
        if (parts.size() != 2) return call.runtime.fail("a dict is made from pairs of key and value");
        RIDGE_TRY(insert(call.runtime, entries, parts[0], parts[1]));
      }
    }
  }
  for (const auto& [name, value] : call.raw.named) {
    RIDGE_TRY(insert(call.runtime, entries, RIDGE_TRY(call.runtime.text(name)), value));
  }
  return entries;
}

Result<Value> dict(const Call& call) { return call.runtime.dict(RIDGE_TRY(entries_from(call))); }
Result<Value> name_space(const Call& call) { return call.runtime.name_space(RIDGE_TRY(entries_from(call))); }

Result<Value> raise_exception(const Call& call) {
  return call.runtime.fail(
      fmt::format("the template refuses this conversation: {}", RIDGE_TRY(to_text(call.runtime, call.arguments[0]))));
}

std::tm local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm result = {};
  localtime_r(&now, &result);
  return result;
}

Result<Value> strftime_now(const Call& call) {
  const std::string format(RIDGE_TRY(call.string(0, {})));
  constexpr std::string_view kKnown = "aAbBcdDeFHIjmMpSTuUwWxXyYZz%";
  for (size_t at = format.find('%'); at != std::string::npos; at = format.find('%', at + 2)) {
    const size_t letter = at + 1 < format.size() && format[at + 1] == '-' ? at + 2 : at + 1;
    if (letter >= format.size() || kKnown.find(format[letter]) == std::string_view::npos) {
      return call.runtime.fail(fmt::format("'strftime_now' knows the formats %{}", fmt::join(kKnown, " %")));
    }
  }
  constexpr size_t kLongest = 200;
  if (format.size() > kLongest) return call.runtime.fail("the format of 'strftime_now' is too long");
  const std::tm now = call.runtime.settings().now.value_or(local_time());
  std::array<char, 8192> buffer;
  const size_t size = std::strftime(buffer.data(), buffer.size(), format.c_str(), &now);
  return call.runtime.text(std::string(buffer.data(), size));
}

constexpr std::array<Native, 5> kFunctions = {{{"dict", "*", dict},
                                               {"namespace", "*", name_space},
                                               {"raise_exception", "message", raise_exception},
                                               {"range", "*", range},
                                               {"strftime_now", "format", strftime_now}}};

}  // namespace

const Native* find_function(std::string_view name) { return find_row(kFunctions, name); }

}  // namespace ridge::jinja
