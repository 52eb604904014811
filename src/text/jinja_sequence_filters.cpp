// Filters of lists, dicts and strings as sequences.
#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "text/jinja_builtins.h"
#include "text/jinja_operators.h"
#include "text/jinja_text.h"

namespace ridge::jinja {
namespace {

// item.a.b or item[0], by a path such as "a.b" or 0, as the `attribute` of filters has it.
Result<Value> by_path(Runtime& runtime, Value item, const Value& path) {
  if (!path.is_string()) return runtime.item(item, path);
  std::string_view rest = path.string();
  while (true) {
    const size_t dot = rest.find('.');
    const std::string_view part = rest.substr(0, dot);
    int64_t index = 0;
    const bool is_index = !part.empty() && std::from_chars(part.data(), part.data() + part.size(), index).ptr ==
                                               part.data() + part.size();
    const Value key = is_index ? Value::integer(index) : RIDGE_TRY(runtime.text(std::string(part)));
    item = RIDGE_TRY(runtime.item(item, key));
    if (dot == std::string_view::npos) return item;
    rest.remove_prefix(dot + 1);
  }
}

struct KeyOptions {
  const Value* attribute = nullptr;  // undefined or none: the item itself
  bool case_sensitive = false;
};

// What sort, unique, min and max compare.
Result<std::vector<Value>> keys_of(Runtime& runtime, const std::vector<Value>& items, const KeyOptions& options) {
  const bool has_path = options.attribute && !options.attribute->is_undefined() && !options.attribute->is_none();
  std::vector<Value> keys;
  keys.reserve(items.size());
  for (const Value& item : items) {
    Value key = has_path ? RIDGE_TRY(by_path(runtime, item, *options.attribute)) : item;
    if (key.is_string() && !options.case_sensitive) key = RIDGE_TRY(runtime.text(text::lower(key.string())));
    keys.push_back(std::move(key));
  }
  return keys;
}

// Stable merge sort of indices: comparisons can fail, which std::sort could not report.
Result<std::vector<size_t>> sorted(Runtime& runtime, const std::vector<Value>& keys, bool reverse) {
  std::vector<size_t> from(keys.size()), to(keys.size());
  for (size_t i = 0; i < from.size(); ++i) from[i] = i;
  for (size_t run = 1; run < from.size(); run *= 2) {
    for (size_t begin = 0; begin < from.size(); begin += 2 * run) {
      const size_t middle = std::min(begin + run, from.size());
      const size_t end = std::min(begin + 2 * run, from.size());
      for (size_t left = begin, right = middle, out = begin; out < end; ++out) {
        bool takes_right = left == middle;
        if (!takes_right && right < end) {
          const std::partial_ordering o = RIDGE_TRY(order(runtime, keys[from[right]], keys[from[left]]));
          takes_right = reverse ? o > 0 : o < 0;
        }
        to[out] = takes_right ? from[right++] : from[left++];
      }
    }
    std::swap(from, to);
  }
  return from;
}

Result<Value> sort(const Call& call) {
  const std::vector<Value> items = RIDGE_TRY(call.runtime.elements(call.self));
  const KeyOptions options{.attribute = &call.arguments[2], .case_sensitive = call.flag(1, false)};
  const std::vector<Value> keys = RIDGE_TRY(keys_of(call.runtime, items, options));
  std::vector<Value> result;
  for (const size_t i : RIDGE_TRY(sorted(call.runtime, keys, call.flag(0, false)))) result.push_back(items[i]);
  return call.runtime.list(std::move(result));
}

Result<Value> dictsort(const Call& call) {
  if (!call.self.is_dict())
    return call.runtime.fail(fmt::format("'dictsort' needs a dict, not {}", call.self.type_name()));
  const std::string_view by = RIDGE_TRY(call.string(1, "key"));
  if (by != "key" && by != "value") return call.runtime.fail("'by' must be 'key' or 'value'");
  std::vector<Value> chosen;
  for (const auto& [key, value] : call.self.entries()) chosen.push_back(by == "key" ? key : value);
  const KeyOptions options{.case_sensitive = call.flag(0, false)};
  const std::vector<Value> keys = RIDGE_TRY(keys_of(call.runtime, chosen, options));
  const std::vector<Value> pairs = RIDGE_TRY(dict_items(call.runtime, call.self.entries()));
  std::vector<Value> result;
  for (const size_t i : RIDGE_TRY(sorted(call.runtime, keys, call.flag(2, false)))) result.push_back(pairs[i]);
  return call.runtime.list(std::move(result));
}

Result<Value> unique(const Call& call) {
  const std::vector<Value> items = RIDGE_TRY(call.runtime.elements(call.self));
  const KeyOptions options{.attribute = &call.arguments[1], .case_sensitive = call.flag(0, false)};
  const std::vector<Value> keys = RIDGE_TRY(keys_of(call.runtime, items, options));
  std::vector<Value> seen, result;
  for (size_t i = 0; i < keys.size(); ++i) {
    bool is_new = true;
    for (size_t k = 0; k < seen.size() && is_new; ++k) is_new = !RIDGE_TRY(equals(call.runtime, seen[k], keys[i]));
    if (!is_new) continue;
    seen.push_back(keys[i]);
    result.push_back(items[i]);
  }
  return call.runtime.list(std::move(result));
}

Result<Value> extreme(const Call& call, bool largest) {
  const std::vector<Value> items = RIDGE_TRY(call.runtime.elements(call.self));
  if (items.empty()) return Value::undefined();
  const KeyOptions options{.attribute = &call.arguments[1], .case_sensitive = call.flag(0, false)};
  const std::vector<Value> keys = RIDGE_TRY(keys_of(call.runtime, items, options));
  size_t best = 0;
  for (size_t i = 1; i < keys.size(); ++i) {
    const std::partial_ordering o = RIDGE_TRY(order(call.runtime, keys[i], keys[best]));
    if (largest ? o > 0 : o < 0) best = i;
  }
  return items[best];
}

Result<Value> min(const Call& call) { return extreme(call, false); }
Result<Value> max(const Call& call) { return extreme(call, true); }

Result<Value> sum(const Call& call) {
  Value total = call.has(1) ? call.arguments[1] : Value::integer(0);
  const bool has_path = call.has(0) && !call.arguments[0].is_none();
  for (const Value& item : RIDGE_TRY(call.runtime.elements(call.self))) {
    const Value part = has_path ? RIDGE_TRY(by_path(call.runtime, item, call.arguments[0])) : item;
    total = RIDGE_TRY(apply(call.runtime, Operator::add, total, part));
  }
  return total;
}

Result<Value> length(const Call& call) {
  const Value& value = call.self;
  switch (value.kind()) {
    case Kind::undefined:
      return Value::integer(0);
    case Kind::string:
      RIDGE_TRY(call.runtime.charge_scan(value.string().size()));
      return Value::integer(static_cast<int64_t>(text::length(value.string())));
    case Kind::list:
      return Value::integer(static_cast<int64_t>(value.items().size()));
    case Kind::dict:
      return Value::integer(static_cast<int64_t>(value.entries().size()));
    default:
      return call.runtime.fail(fmt::format("{} has no length", value.type_name()));
  }
}

Result<Value> first(const Call& call) {
  if (call.self.is_list() || call.self.is_string()) return call.runtime.item(call.self, Value::integer(0));
  const std::vector<Value> items = RIDGE_TRY(call.runtime.elements(call.self));
  return items.empty() ? Value::undefined() : items.front();
}

Result<Value> last(const Call& call) {
  if (call.self.is_list() || call.self.is_string()) return call.runtime.item(call.self, Value::integer(-1));
  const std::vector<Value> items = RIDGE_TRY(call.runtime.elements(call.self));
  return items.empty() ? Value::undefined() : items.back();
}

Result<Value> list(const Call& call) { return call.runtime.list(RIDGE_TRY(call.runtime.elements(call.self))); }

Result<Value> items(const Call& call) {
  if (call.self.is_undefined()) return call.runtime.list({});
  if (!call.self.is_dict())
    return call.runtime.fail(fmt::format("'items' needs a dict, not {}", call.self.type_name()));
  return call.runtime.list(RIDGE_TRY(dict_items(call.runtime, call.self.entries())));
}

Result<Value> reverse(const Call& call) {
  std::vector<Value> result = RIDGE_TRY(call.runtime.elements(call.self));
  std::reverse(result.begin(), result.end());
  if (!call.self.is_string()) return call.runtime.list(std::move(result));
  Writer out(call.runtime);
  for (const Value& character : result) RIDGE_TRY(out.add(character.string()));
  return Value::text(out.take());
}

Result<Value> join(const Call& call) {
  const std::string between = call.has(0) ? RIDGE_TRY(to_text(call.runtime, call.arguments[0])) : std::string();
  const bool has_path = call.has(1) && !call.arguments[1].is_none();
  Writer out(call.runtime);
  bool is_first = true;
  for (const Value& item : RIDGE_TRY(call.runtime.elements(call.self))) {
    if (!is_first) RIDGE_TRY(out.add(between));
    is_first = false;
    const Value part = has_path ? RIDGE_TRY(by_path(call.runtime, item, call.arguments[1])) : item;
    RIDGE_TRY(write_text(call.runtime, part, out));
  }
  return Value::text(out.take());
}

// The arguments after the first `skipped`.
Arguments rest_of(const Arguments& arguments, size_t skipped) {
  Arguments rest = arguments;
  rest.positional.erase(rest.positional.begin(), rest.positional.begin() + static_cast<std::ptrdiff_t>(skipped));
  return rest;
}

// In Jinja these filters are lazy: on none they fail only if the result is read, and some templates never read it. Here
// the result is empty.
Result<std::vector<Value>> lazy_elements(const Call& call) {
  if (call.self.is_none()) return std::vector<Value>();
  return call.runtime.elements(call.self);
}

// map('upper'), map('replace', 'a', 'b'), map(attribute='x', default='y').
Result<Value> map(const Call& call) {
  Runtime& runtime = call.runtime;
  std::vector<Value> result = RIDGE_TRY(lazy_elements(call));
  if (!call.raw.positional.empty()) {
    if (!call.raw.positional[0].is_string()) return runtime.fail("'map' needs the name of a filter");
    const Arguments rest = rest_of(call.raw, 1);
    for (Value& item : result) item = RIDGE_TRY(runtime.filter(call.raw.positional[0].string(), item, rest));
    return runtime.list(std::move(result));
  }
  Value path, fallback;
  for (const auto& [name, value] : call.raw.named) {
    if (name != "attribute" && name != "default") return runtime.fail(fmt::format("'map' has no argument '{}'", name));
    (name == "attribute" ? path : fallback) = value;
  }
  if (path.is_undefined()) return runtime.fail("'map' needs the name of a filter, or attribute='…'");
  for (Value& item : result) {
    item = RIDGE_TRY(by_path(runtime, item, path));
    if (item.is_undefined() && !fallback.is_undefined()) item = fallback;
  }
  return runtime.list(std::move(result));
}

// select, reject, selectattr, rejectattr: items that pass a test, or are true.
Result<Value> choose(const Call& call, bool by_attribute, bool keeps) {
  Runtime& runtime = call.runtime;
  const std::vector<Value>& arguments = call.raw.positional;
  if (by_attribute && arguments.empty()) return runtime.fail("the name of an attribute is needed");
  const size_t test_at = by_attribute ? 1 : 0;
  const bool has_test = arguments.size() > test_at;
  if (has_test && !arguments[test_at].is_string()) return runtime.fail("the name of a test must be a string");
  const Arguments rest = has_test ? rest_of(call.raw, test_at + 1) : Arguments();
  std::vector<Value> result;
  for (const Value& item : RIDGE_TRY(lazy_elements(call))) {
    const Value tested = by_attribute ? RIDGE_TRY(by_path(runtime, item, arguments[0])) : item;
    const bool passes = has_test ? RIDGE_TRY(runtime.test(arguments[test_at].string(), tested, rest)) : tested.truthy();
    if (passes == keeps) result.push_back(item);
  }
  return runtime.list(std::move(result));
}

Result<Value> select(const Call& call) { return choose(call, false, true); }
Result<Value> reject(const Call& call) { return choose(call, false, false); }
Result<Value> selectattr(const Call& call) { return choose(call, true, true); }
Result<Value> rejectattr(const Call& call) { return choose(call, true, false); }

Result<Value> attr(const Call& call) {
  Value found = RIDGE_TRY(call.runtime.attribute(call.self, RIDGE_TRY(call.string(0, {}))));
  // Jinja's `attr` sees methods and the attributes of namespaces and loops, never the keys of a dict.
  const bool is_key = call.self.is_dict() && found.kind() != Kind::callable;
  return is_key || found.is_undefined() ? Value::undefined() : found;
}

// batch(2): rows of two. The last row is filled up if there is something to fill it with.
Result<Value> batch(const Call& call) {
  const std::vector<Value> items = RIDGE_TRY(call.runtime.elements(call.self));
  const int64_t width = RIDGE_TRY(call.integer(0, 1));
  if (width < 1 || width > call.runtime.settings().limits.range)
    return call.runtime.fail("'linecount' must be positive");
  const auto step = static_cast<size_t>(width);
  std::vector<Value> rows;
  for (size_t begin = 0; begin < items.size(); begin += step) {
    const size_t end = std::min(begin + step, items.size());
    std::vector<Value> row(items.begin() + static_cast<std::ptrdiff_t>(begin),
                           items.begin() + static_cast<std::ptrdiff_t>(end));
    if (call.has(1) && !call.arguments[1].is_none()) row.resize(step, call.arguments[1]);
    rows.push_back(RIDGE_TRY(call.runtime.list(std::move(row))));
  }
  return call.runtime.list(std::move(rows));
}

constexpr std::array<Native, 21> kFilters = {{{"attr", "name", attr},
                                              {"batch", "linecount,fill_with=", batch},
                                              {"count", "", length},
                                              {"dictsort", "case_sensitive=,by=,reverse=", dictsort},
                                              {"first", "", first},
                                              {"items", "", items},
                                              {"join", "d=,attribute=", join},
                                              {"last", "", last},
                                              {"length", "", length},
                                              {"list", "", list},
                                              {"map", "*", map},
                                              {"max", "case_sensitive=,attribute=", max},
                                              {"min", "case_sensitive=,attribute=", min},
                                              {"reject", "*", reject},
                                              {"rejectattr", "*", rejectattr},
                                              {"reverse", "", reverse},
                                              {"select", "*", select},
                                              {"selectattr", "*", selectattr},
                                              {"sort", "reverse=,case_sensitive=,attribute=", sort},
                                              {"sum", "attribute=,start=", sum},
                                              {"unique", "case_sensitive=,attribute=", unique}}};

}  // namespace

std::span<const Native> sequence_filters() { return kFilters; }

}  // namespace ridge::jinja
