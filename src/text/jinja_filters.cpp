// Filters of one text, number or value.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "text/jinja_builtins.h"
#include "text/jinja_operators.h"
#include "text/jinja_text.h"

namespace ridge::jinja {
namespace {

// The filtered value as text, as Jinja's filters see it.
Result<std::string> subject(const Call& call) { return to_text(call.runtime, call.self); }

Result<Value> upper(const Call& call) { return call.runtime.text(text::upper(RIDGE_TRY(subject(call)))); }
Result<Value> lower(const Call& call) { return call.runtime.text(text::lower(RIDGE_TRY(subject(call)))); }
Result<Value> title(const Call& call) { return call.runtime.text(text::title_words(RIDGE_TRY(subject(call)))); }
Result<Value> capitalize(const Call& call) { return call.runtime.text(text::capitalize(RIDGE_TRY(subject(call)))); }
Result<Value> string(const Call& call) { return call.runtime.text(RIDGE_TRY(subject(call))); }

Result<Value> escape(const Call& call) {
  return call.runtime.text(text::html(RIDGE_TRY(subject(call)), call.runtime.bytes_left()));
}

// Output is never escaped here, so `safe` has nothing to mark.
Result<Value> safe(const Call& call) { return call.self; }

Result<Value> trim(const Call& call) {
  const std::string whole = RIDGE_TRY(subject(call));
  std::optional<std::string_view> characters;
  if (call.has(0) && !call.arguments[0].is_none()) characters = RIDGE_TRY(call.string(0, {}));
  RIDGE_TRY(call.runtime.charge_scan(whole.size() * (characters ? characters->size() : 1)));
  return call.runtime.text(std::string(text::strip(whole, characters, {.left = true, .right = true})));
}

Result<Value> replace(const Call& call) { return replace_text(call.runtime, RIDGE_TRY(subject(call)), call); }

Result<Value> standard(const Call& call) {
  const bool also_false = call.flag(1, false);
  const bool missing = call.self.is_undefined() || (also_false && !call.self.truthy());
  if (!missing) return call.self;
  return call.has(0) ? call.arguments[0] : call.runtime.text({});
}

Result<Value> center(const Call& call) {
  const std::string whole = RIDGE_TRY(subject(call));
  const int64_t width = RIDGE_TRY(call.integer(0, 80));
  const auto length = static_cast<int64_t>(text::length(whole));
  const int64_t pad = std::max<int64_t>(0, width > length ? width - length : 0);
  const int64_t left = pad / 2 + (pad & width & 1);  // as str.center() does
  Writer out(call.runtime);
  RIDGE_TRY(out.add(' ', static_cast<uint64_t>(left)));
  RIDGE_TRY(out.add(whole));
  RIDGE_TRY(out.add(' ', static_cast<uint64_t>(pad - left)));
  return Value::text(out.take());
}

Result<Value> indent(const Call& call) {
  std::string whole = RIDGE_TRY(subject(call));
  std::string by;
  if (call.has(0) && call.arguments[0].is_string()) {
    by = call.arguments[0].string();
  } else {
    const int64_t width = RIDGE_TRY(call.integer(0, 4));
    RIDGE_TRY(call.runtime.charge_bytes(static_cast<uint64_t>(std::max<int64_t>(width, 0))));
    by.assign(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
  }
  const bool first = call.flag(1, false);
  const bool blank = call.flag(2, false);
  whole += '\n';  // so that a last empty line counts
  Writer out(call.runtime);
  bool is_first = true;
  for (const std::string_view line : split_lines(whole)) {
    if (!is_first) RIDGE_TRY(out.add("\n"));
    if (is_first ? first : (blank || !line.empty())) RIDGE_TRY(out.add(by));
    is_first = false;
    RIDGE_TRY(out.add(line));
  }
  return Value::text(out.take());
}

Result<Value> format(const Call& call) {
  const std::string pattern = RIDGE_TRY(subject(call));
  if (!call.raw.named.empty())
    return call.runtime.fail("'format' with names is not supported; give the values in order");
  return format_percent(call.runtime, pattern, RIDGE_TRY(call.runtime.list(call.raw.positional, ListKind::tuple)));
}

Result<Value> tojson(const Call& call) {
  JsonStyle style;
  style.ensure_ascii = call.flag(0, false);
  style.sort_keys = call.flag(3, false);
  if (call.has(1) && !call.arguments[1].is_none()) {
    constexpr int64_t kMostIndent = 64;
    style.indent = std::min(RIDGE_TRY(call.integer(1, 0)), kMostIndent);
    style.item_separator = ",";
  }
  if (call.has(2) && !call.arguments[2].is_none()) {
    const Value& separators = call.arguments[2];
    const bool pair = separators.is_list() && separators.items().size() == 2 && separators.items()[0].is_string() &&
                      separators.items()[1].is_string();
    if (!pair) return call.runtime.fail("'separators' must be two strings");
    style.item_separator = separators.items()[0].string();
    style.key_separator = separators.items()[1].string();
  }
  Writer out(call.runtime);
  RIDGE_TRY(write_json(call.runtime, call.self, style, 0, out));
  return Value::text(out.take());
}

// A number as Python's int() and float() read it: white space around it and underscores between digits are allowed.
std::string number_text(std::string_view s) {
  std::string out(text::strip(s, std::nullopt, {.left = true, .right = true}));
  for (size_t i = 1; i + 1 < out.size(); ++i) {
    const auto alphanumeric = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
    if (out[i] == '_' && alphanumeric(out[i - 1]) && alphanumeric(out[i + 1])) out.erase(i, 1);
  }
  if (out.size() > 1 && out[0] == '+' && out[1] != '-') out.erase(0, 1);
  return out;
}

std::optional<int64_t> parse_integer(std::string_view s, int base) {
  std::string digits = number_text(s);
  const size_t sign = digits.starts_with('-') ? 1 : 0;
  const std::string_view prefix = std::string_view(digits).substr(sign, 2);
  const int prefix_base = prefix == "0x" || prefix == "0X" ? 16 : prefix == "0o" ? 8 : prefix == "0b" ? 2 : 0;
  if (prefix_base != 0 && (base == prefix_base || base == 0)) {
    digits.erase(sign, 2);
    base = prefix_base;
  }
  int64_t number = 0;
  const char* end = digits.data() + digits.size();
  const auto read = std::from_chars(digits.data(), end, number, base == 0 ? 10 : base);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return number;
}

std::optional<double> parse_real(std::string_view s) {
  const std::string digits = number_text(s);
  double number = 0;
  const char* end = digits.data() + digits.size();
  const auto read = std::from_chars(digits.data(), end, number);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return number;
}

std::optional<int64_t> truncate(double number) {
  if (!(number > -9.2e18 && number < 9.2e18)) return std::nullopt;
  return static_cast<int64_t>(number);
}

Result<Value> to_integer(const Call& call) {
  const Value fallback = call.has(0) ? call.arguments[0] : Value::integer(0);
  const int64_t base = RIDGE_TRY(call.integer(1, 10));
  if (base != 0 && (base < 2 || base > 36)) return call.runtime.fail("'base' must be 0 or 2 to 36");
  std::optional<int64_t> number;
  if (call.self.is_string()) {
    if (call.self.string().size() > 400) return fallback;
    number = parse_integer(call.self.string(), static_cast<int>(base));
    if (!number) {
      const std::optional<double> real = parse_real(call.self.string());
      if (real) number = truncate(*real);
    }
  } else if (call.self.is_real()) {
    number = truncate(call.self.as_real());
  } else if (call.self.is_number()) {
    number = call.self.as_integer();
  }
  return number ? Value::integer(*number) : fallback;
}

Result<Value> to_real(const Call& call) {
  const Value fallback = call.has(0) ? call.arguments[0] : Value::real(0.0);
  if (call.self.is_number()) return Value::real(call.self.as_real());
  if (!call.self.is_string() || call.self.string().size() > 400) return fallback;
  const std::optional<double> number = parse_real(call.self.string());
  return number ? Value::real(*number) : fallback;
}

Result<Value> absolute(const Call& call) {
  if (call.self.is_real()) return Value::real(std::fabs(call.self.as_real()));
  if (!call.self.is_number())
    return call.runtime.fail(fmt::format("'abs' needs a number, not {}", call.self.type_name()));
  return call.self.as_integer() < 0 ? apply(call.runtime, Operator::negate, call.self)
                                    : Result<Value>(Value::integer(call.self.as_integer()));
}

Result<Value> round(const Call& call) {
  const int64_t precision = RIDGE_TRY(call.integer(0, 0));
  const std::string_view method = RIDGE_TRY(call.string(1, "common"));
  if (!call.self.is_number())
    return call.runtime.fail(fmt::format("'round' needs a number, not {}", call.self.type_name()));
  if (precision < -300 || precision > 300) return call.runtime.fail("'precision' must lie in [-300, 300]");
  const double number = call.self.as_real();
  const double scale = std::pow(10.0, static_cast<double>(precision));
  if (method == "ceil") return Value::real(std::ceil(number * scale) / scale);
  if (method == "floor") return Value::real(std::floor(number * scale) / scale);
  if (method != "common") return call.runtime.fail("the method of 'round' must be 'common', 'ceil' or 'floor'");
  if (!call.self.is_real() && precision >= 0) return Value::integer(call.self.as_integer());
  if (precision < 0 || !std::isfinite(number)) return Value::real(std::nearbyint(number * scale) / scale);
  // Through the decimal digits, which are exact: 2.675 is a little less than it looks and rounds down, as in Python.
  return Value::real(parse_real(fmt::format("{:.{}f}", number, precision)).value_or(number));
}

constexpr std::array<Native, 21> kFilters = {{{"abs", "", absolute},
                                              {"capitalize", "", capitalize},
                                              {"center", "width=", center},
                                              {"d", "default_value=,boolean=", standard},
                                              {"default", "default_value=,boolean=", standard},
                                              {"e", "", escape},
                                              {"escape", "", escape},
                                              {"float", "default=", to_real},
                                              {"forceescape", "", escape},
                                              {"format", "*", format},
                                              {"indent", "width=,first=,blank=", indent},
                                              {"int", "default=,base=", to_integer},
                                              {"lower", "", lower},
                                              {"replace", "old,new,count=", replace},
                                              {"round", "precision=,method=", round},
                                              {"safe", "", safe},
                                              {"string", "", string},
                                              {"title", "", title},
                                              {"tojson", "ensure_ascii=,indent=,separators=,sort_keys=", tojson},
                                              {"trim", "chars=", trim},
                                              {"upper", "", upper}}};

}  // namespace

std::span<const Native> scalar_filters() { return kFilters; }

const Native* find_row(std::span<const Native> rows, std::string_view name) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const Native& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

const Native* find_filter(std::string_view name) {
  const Native* scalar = find_row(scalar_filters(), name);
  return scalar != nullptr ? scalar : find_row(sequence_filters(), name);
}

}  // namespace ridge::jinja
