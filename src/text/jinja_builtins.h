// The filters, tests, methods and functions that templates may call, each one row of a table in its own file.
//
//   if (const Native* native = find_filter("upper")) value = RIDGE_TRY(runtime.invoke(*native, value, {}));
#pragma once

#include <span>
#include <string_view>

#include "text/jinja_runtime.h"

namespace ridge::jinja {

// Null where there is none of that name.
const Native* find_filter(std::string_view name);
const Native* find_test(std::string_view name);
const Native* find_method(Kind kind, std::string_view name);
const Native* find_function(std::string_view name);

// The two halves of find_filter's table: what works on one text or number, and what works on lists and dicts.
std::span<const Native> scalar_filters();
std::span<const Native> sequence_filters();

const Native* find_row(std::span<const Native> rows, std::string_view name);

// Shared by methods and filters of the same name.
Result<Value> replace_text(Runtime& runtime, std::string_view text, const Call& call);  // arguments: old, new, count
Result<std::vector<Value>> dict_items(Runtime& runtime, const Entries& entries);        // tuples of key and value
std::vector<std::string_view> split_lines(std::string_view text);                       // str.splitlines()

}  // namespace ridge::jinja
