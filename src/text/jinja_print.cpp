// Values to text: str(), JSON and format strings (declared in jinja_operators.h).
#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "text/jinja_operators.h"
#include "text/jinja_text.h"

namespace ridge::jinja {
namespace {

Result<void> write_repr(Runtime& runtime, const Value& value, Writer& out);

Result<void> write_items(Runtime& runtime, const Value& list, Writer& out) {
  RIDGE_TRY(out.add(list.is_tuple() ? "(" : "["));
  bool first = true;
  for (const Value& item : list.items()) {
    if (!first) RIDGE_TRY(out.add(", "));
    first = false;
    RIDGE_TRY(write_repr(runtime, item, out));
  }
  if (!list.is_tuple()) return out.add("]");
  return out.add(list.items().size() == 1 ? ",)" : ")");
}

Result<void> write_entries(Runtime& runtime, const Entries& entries, Writer& out) {
  RIDGE_TRY(out.add("{"));
  bool first = true;
  for (const auto& [key, value] : entries) {
    if (!first) RIDGE_TRY(out.add(", "));
    first = false;
    RIDGE_TRY(write_repr(runtime, key, out));
    RIDGE_TRY(out.add(": "));
    RIDGE_TRY(write_repr(runtime, value, out));
  }
  return out.add("}");
}

Result<void> write_repr(Runtime& runtime, const Value& value, Writer& out) {
  RIDGE_TRY(runtime.charge_steps(1));
  switch (value.kind()) {
    case Kind::undefined:
      return out.add("Undefined");
    case Kind::none:
      return out.add("None");
    case Kind::boolean:
      return out.add(value.as_boolean() ? "True" : "False");
    case Kind::integer:
      return out.add(fmt::format_int(value.as_integer()).str());
    case Kind::real:
      return out.add(text::real(value.as_real()));
    case Kind::string:
      return out.add(text::repr(value.string(), runtime.bytes_left()));
    case Kind::list:
      return write_items(runtime, value, out);
    case Kind::dict:
      return write_entries(runtime, value.entries(), out);
    case Kind::name_space:
      return out.add("<Namespace>");
    case Kind::loop:
      return out.add(fmt::format("<LoopContext {}/{}>", value.as_loop().index + 1, value.as_loop().length));
    case Kind::callable:
      break;
  }
  const Bound& bound = value.bound();
  if (bound.macro != nullptr) return out.add(fmt::format("<Macro '{}'>", bound.macro->definition->text));
  return out.add(fmt::format("<function {}>", bound.native->name));
}

Result<void> new_line(const JsonStyle& style, int level, Writer& out) {
  if (!style.indent) return {};
  RIDGE_TRY(out.add("\n"));
  return out.add(' ', static_cast<uint64_t>(level * std::max<int64_t>(*style.indent, 0)));
}

Result<std::string> json_key(Runtime& runtime, const Value& key) {
  if (key.is_string()) return key.string();
  if (key.is_none()) return std::string("null");
  if (key.is_boolean()) return std::string(key.as_boolean() ? "true" : "false");
  if (key.is_number()) return to_text(runtime, key);
  return runtime.fail(fmt::format("{} cannot be a key in JSON", key.type_name()));
}

Result<void> write_json_dict(Runtime& runtime, const Value& value, const JsonStyle& style, int level, Writer& out) {
  std::vector<std::pair<std::string, const Value*>> entries;
  for (const auto& [key, item] : value.entries()) {
    entries.emplace_back(RIDGE_TRY(json_key(runtime, key)), &item);
    RIDGE_TRY(runtime.charge_bytes(entries.back().first.size()));
  }
  if (style.sort_keys) {
    std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  }
  if (entries.empty()) return out.add("{}");
  RIDGE_TRY(out.add("{"));
  for (size_t i = 0; i < entries.size(); ++i) {
    if (i > 0) RIDGE_TRY(out.add(style.item_separator));
    RIDGE_TRY(new_line(style, level + 1, out));
    RIDGE_TRY(out.add(text::json(entries[i].first, style.ensure_ascii, runtime.bytes_left())));
    RIDGE_TRY(out.add(style.key_separator));
    RIDGE_TRY(write_json(runtime, *entries[i].second, style, level + 1, out));
  }
  RIDGE_TRY(new_line(style, level, out));
  return out.add("}");
}

Result<void> write_json_list(Runtime& runtime, const Value& value, const JsonStyle& style, int level, Writer& out) {
  const std::vector<Value>& items = value.items();
  if (items.empty()) return out.add("[]");
  RIDGE_TRY(out.add("["));
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) RIDGE_TRY(out.add(style.item_separator));
    RIDGE_TRY(new_line(style, level + 1, out));
    RIDGE_TRY(write_json(runtime, items[i], style, level + 1, out));
  }
  RIDGE_TRY(new_line(style, level, out));
  return out.add("]");
}

// What stands between % and its letter.
struct PercentSpec {
  bool left = false, zero = false, plus = false;
  int width = 0;
  std::optional<int> precision;
};

constexpr int kMaxWidth = 10'000;

Result<int> read_number(Runtime& runtime, std::string_view format, size_t& at) {
  int number = 0;
  while (at < format.size() && format[at] >= '0' && format[at] <= '9') {
    number = number * 10 + (format[at++] - '0');
    if (number > kMaxWidth)
      return runtime.fail(fmt::format("a width or precision above {} in a format string", kMaxWidth));
  }
  return number;
}

Result<PercentSpec> read_spec(Runtime& runtime, std::string_view format, size_t& at) {
  PercentSpec spec;
  for (; at < format.size(); ++at) {
    if (format[at] == '-') {
      spec.left = true;
    } else if (format[at] == '0') {
      spec.zero = true;
    } else if (format[at] == '+') {
      spec.plus = true;
    } else {
      break;
    }
  }
  spec.width = RIDGE_TRY(read_number(runtime, format, at));
  if (at < format.size() && format[at] == '.') {
    ++at;
    spec.precision = RIDGE_TRY(read_number(runtime, format, at));
  }
  return spec;
}

Result<std::string> format_number(Runtime& runtime, char letter, const PercentSpec& spec, const Value& value) {
  if (!value.is_number()) return runtime.fail(fmt::format("%{} needs a number, not {}", letter, value.type_name()));
  const std::string_view sign = spec.plus && value.as_real() >= 0 ? "+" : "";
  if (letter == 'f' || letter == 'F')
    return fmt::format("{}{:.{}f}", sign, value.as_real(), spec.precision.value_or(6));
  if (letter == 'e') return fmt::format("{}{:.{}e}", sign, value.as_real(), spec.precision.value_or(6));
  if (letter == 'g') return fmt::format("{}{:.{}g}", sign, value.as_real(), spec.precision.value_or(6));
  const double real = value.as_real();
  if (!(real > -9.2e18 && real < 9.2e18)) return runtime.fail("this number is too large to be formatted as an integer");
  const int64_t whole = value.is_real() ? static_cast<int64_t>(real) : value.as_integer();
  if (letter == 'x') return fmt::format("{}{:x}", sign, whole);
  if (letter == 'X') return fmt::format("{}{:X}", sign, whole);
  return fmt::format("{}{}", sign, whole);
}

Result<std::string> format_one(Runtime& runtime, char letter, const PercentSpec& spec, const Value& value) {
  if (letter == 's' || letter == 'r') {
    Writer out(runtime);
    RIDGE_TRY(letter == 's' ? write_text(runtime, value, out) : write_repr(runtime, value, out));
    std::string whole = out.take();
    if (spec.precision) whole.resize(text::offset(whole, static_cast<size_t>(*spec.precision)));
    return whole;
  }
  if (std::string_view("diufFegxX").find(letter) != std::string_view::npos) {
    return format_number(runtime, letter, spec, value);
  }
  return runtime.fail(fmt::format("the format %{} is not supported (%s %r %d %i %f %e %g %x are)", letter));
}

}  // namespace

Result<void> write_text(Runtime& runtime, const Value& value, Writer& out) {
  if (value.is_undefined()) return {};
  if (value.is_string()) return out.add(value.string());
  return write_repr(runtime, value, out);
}

Result<std::string> to_text(Runtime& runtime, const Value& value) {
  Writer out(runtime);
  RIDGE_TRY(write_text(runtime, value, out));
  return out.take();
}

Result<void> write_json(Runtime& runtime, const Value& value, const JsonStyle& style, int level, Writer& out) {
  RIDGE_TRY(runtime.charge_steps(1));
  switch (value.kind()) {
    case Kind::none:
      return out.add("null");
    case Kind::boolean:
      return out.add(value.as_boolean() ? "true" : "false");
    case Kind::integer:
      return out.add(fmt::format_int(value.as_integer()).str());
    case Kind::real:
      if (std::isnan(value.as_real())) return out.add("NaN");
      if (std::isinf(value.as_real())) return out.add(value.as_real() < 0 ? "-Infinity" : "Infinity");
      return out.add(text::real(value.as_real()));
    case Kind::string:
      return out.add(text::json(value.string(), style.ensure_ascii, runtime.bytes_left()));
    case Kind::list:
      return write_json_list(runtime, value, style, level, out);
    case Kind::dict:
      return write_json_dict(runtime, value, style, level, out);
    default:
      return runtime.fail(fmt::format("{} cannot be written as JSON", value.type_name()));
  }
}

Result<Value> format_percent(Runtime& runtime, std::string_view format, const Value& values) {
  Writer out(runtime);
  size_t used = 0;
  const auto next_value = [&]() -> Result<Value> {
    const size_t index = used++;
    if (values.is_tuple() && index < values.items().size()) return values.items()[index];
    if (!values.is_tuple() && index == 0) return values;
    return runtime.fail("the format string asks for more values than there are");
  };
  for (size_t at = 0; at < format.size();) {
    const size_t percent = std::min(format.find('%', at), format.size());
    RIDGE_TRY(out.add(format.substr(at, percent - at)));
    at = percent + 1;
    if (percent == format.size()) break;
    const PercentSpec spec = RIDGE_TRY(read_spec(runtime, format, at));
    if (at >= format.size()) return runtime.fail("the format string ends inside a format");
    const char letter = format[at++];
    if (letter == '%') {
      RIDGE_TRY(out.add("%"));
      continue;
    }
    const Value value = RIDGE_TRY(next_value());
    std::string piece = RIDGE_TRY(format_one(runtime, letter, spec, value));
    const size_t length = text::length(piece);
    const size_t pad = static_cast<size_t>(spec.width) > length ? static_cast<size_t>(spec.width) - length : 0;
    const bool zeros = spec.zero && !spec.left && letter != 's' && letter != 'r';
    const size_t sign = zeros && (piece.starts_with('-') || piece.starts_with('+')) ? 1 : 0;
    piece.insert(spec.left ? piece.size() : sign, pad, zeros ? '0' : ' ');
    RIDGE_TRY(out.add(piece));
  }
  const bool too_many = values.is_tuple() && used < values.items().size();
  if (too_many || (used == 0 && !values.is_tuple() && !values.is_dict() && !values.is_list())) {
    return runtime.fail("the format string does not use all values");
  }
  return Value::text(out.take());
}

Result<Value> format_braces(Runtime& runtime, std::string_view format, const Arguments& arguments) {
  Writer out(runtime);
  size_t automatic = 0;
  for (size_t at = 0; at < format.size();) {
    const size_t brace = std::min(format.find_first_of("{}", at), format.size());
    RIDGE_TRY(out.add(format.substr(at, brace - at)));
    if (brace == format.size()) break;
    if (brace + 1 < format.size() && format[brace + 1] == format[brace]) {  // {{ or }}
      RIDGE_TRY(out.add(format.substr(brace, 1)));
      at = brace + 2;
      continue;
    }
    const size_t close = format.find('}', brace);
    if (format[brace] == '}' || close == std::string_view::npos) return runtime.fail("a lone brace in a format string");
    const std::string_view field = format.substr(brace + 1, close - brace - 1);
    at = close + 1;
    size_t index = automatic;
    const bool numbered = !field.empty() && std::from_chars(field.data(), field.data() + field.size(), index).ptr ==
                                                field.data() + field.size();
    if (field.empty() || numbered) {
      automatic += field.empty() ? 1 : 0;
      if (index >= arguments.positional.size())
        return runtime.fail("the format string asks for more values than there are");
      RIDGE_TRY(write_text(runtime, arguments.positional[index], out));
      continue;
    }
    const auto named = std::find_if(arguments.named.begin(), arguments.named.end(),
                                    [&](const auto& argument) { return argument.first == field; });
    if (named == arguments.named.end()) {
      return runtime.fail(
          fmt::format("the field '{{{}}}' of a format string is no value given and no format known", field));
    }
    RIDGE_TRY(write_text(runtime, named->second, out));
  }
  return Value::text(out.take());
}

}  // namespace ridge::jinja
