// What operators and conversions do with values: Python's rules, on 64-bit integers (overflow is an error).
//
// Not for: methods and filters (jinja_builtins.h).
//
//   Value sum = RIDGE_TRY(apply(runtime, Operator::add, a, b));
//   std::string shown = RIDGE_TRY(to_text(runtime, sum));
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>

#include "text/jinja_runtime.h"

namespace ridge::jinja {

// Text under construction; every byte is charged before it is stored.
class Writer {
 public:
  explicit Writer(Runtime& runtime) : runtime_(runtime) {}
  Result<void> add(std::string_view text);
  Result<void> add(char c, uint64_t count);
  std::string take() { return std::move(text_); }

 private:
  Runtime& runtime_;
  std::string text_;
};

Result<Value> apply(Runtime& runtime, Operator op, const Value& left, const Value& right);
Result<Value> apply(Runtime& runtime, Operator op, const Value& operand);
Result<bool> equals(Runtime& runtime, const Value& left, const Value& right);
// Numbers with numbers, texts with texts, lists with lists; anything else is an error.
Result<std::partial_ordering> order(Runtime& runtime, const Value& left, const Value& right);
Result<bool> contains(Runtime& runtime, const Value& container, const Value& item);
// The entry of a dict, or null.
Result<const Value*> find(Runtime& runtime, const Entries& entries, const Value& key);
// Adds or replaces, as a dict literal does. Keys are texts, numbers, none or tuples.
Result<void> insert(Runtime& runtime, Entries& entries, const Value& key, Value value);
// `needle` in `text` from `start`, charged for the worst case.
Result<size_t> find_text(Runtime& runtime, std::string_view text, std::string_view needle, size_t start = 0);
Result<size_t> rfind_text(Runtime& runtime, std::string_view text, std::string_view needle);

// "'tools' is undefined", for messages.
std::string describe_undefined(const Value& value);

// str(): texts as they are, the rest as Python prints it.
Result<std::string> to_text(Runtime& runtime, const Value& value);
// A piece of the output: like str(), but without copying texts.
Result<void> write_text(Runtime& runtime, const Value& value, Writer& out);

struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  std::optional<int64_t> indent = std::nullopt;
  std::string_view item_separator = ", ";
  std::string_view key_separator = ": ";
};
Result<void> write_json(Runtime& runtime, const Value& value, const JsonStyle& style, int level, Writer& out);

// "%s and %d" % values, and "{} and {0}".format(…).
Result<Value> format_percent(Runtime& runtime, std::string_view format, const Value& values);
Result<Value> format_braces(Runtime& runtime, std::string_view format, const Arguments& arguments);

}  // namespace ridge::jinja
