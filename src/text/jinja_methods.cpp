// Methods of strings, dicts, lists and the loop variable.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "text/jinja_builtins.h"
#include "text/jinja_operators.h"
#include "text/jinja_text.h"

namespace ridge::jinja {
namespace {

const std::string& self(const Call& call) { return call.self.string(); }

// --- Strings -------------------------------------------------------------------------------------------------------

Result<Value> stripped(const Call& call, text::Sides sides) {
  std::optional<std::string_view> characters;
  if (call.has(0) && !call.arguments[0].is_none()) characters = RIDGE_TRY(call.string(0, {}));
  RIDGE_TRY(call.runtime.charge_scan(self(call).size() * (characters ? characters->size() : 1)));
  return call.runtime.text(std::string(text::strip(self(call), characters, sides)));
}
Result<Value> strip(const Call& call) { return stripped(call, {.left = true, .right = true}); }
Result<Value> lstrip(const Call& call) { return stripped(call, {.left = true}); }
Result<Value> rstrip(const Call& call) { return stripped(call, {.right = true}); }

Result<Value> upper(const Call& call) { return call.runtime.text(text::upper(self(call))); }
Result<Value> lower(const Call& call) { return call.runtime.text(text::lower(self(call))); }
Result<Value> title(const Call& call) { return call.runtime.text(text::title(self(call))); }
Result<Value> capitalize(const Call& call) { return call.runtime.text(text::capitalize(self(call))); }
Result<Value> replace(const Call& call) { return replace_text(call.runtime, self(call), call); }
Result<Value> format(const Call& call) { return format_braces(call.runtime, self(call), call.raw); }

Result<Value> texts(Runtime& runtime, const std::vector<std::string_view>& pieces) {
  std::vector<Value> items;
  items.reserve(pieces.size());
  for (const std::string_view piece : pieces) items.push_back(RIDGE_TRY(runtime.text(std::string(piece))));
  return runtime.list(std::move(items));
}

struct Span {
  size_t begin, end;
};

// The words between white space.
Result<std::vector<Span>> words(Runtime& runtime, std::string_view whole) {
  std::vector<Span> spans;
  bool in_word = false;
  for (size_t at = 0; at < whole.size();) {
    const size_t here = at;
    const bool space = text::is_space(text::next(whole, at));
    if (!space && !in_word) {
      RIDGE_TRY(runtime.charge_bytes(sizeof(Value)));
      spans.push_back({here, whole.size()});
    } else if (space && in_word) {
      spans.back().end = here;
    }
    in_word = !space;
  }
  return spans;
}

// split() and rsplit() without a separator: at most `most` words, and the rest with the white space at its far end.
Result<std::vector<std::string_view>> split_at_space(const Call& call, uint64_t most, bool from_right) {
  const std::string_view whole = self(call);
  RIDGE_TRY(call.runtime.charge_scan(whole.size()));
  std::vector<Span> spans = RIDGE_TRY(words(call.runtime, whole));
  if (spans.size() > most) {
    const auto limit = static_cast<std::ptrdiff_t>(most);
    if (from_right) {
      spans.erase(spans.begin(), spans.end() - limit - 1);
      spans.front().begin = 0;
    } else {
      spans.erase(spans.begin() + limit + 1, spans.end());
      spans.back().end = whole.size();
    }
  }
  std::vector<std::string_view> pieces;
  for (const Span& span : spans) pieces.push_back(whole.substr(span.begin, span.end - span.begin));
  return pieces;
}

Result<std::vector<std::string_view>> split_at(const Call& call, uint64_t most, bool from_right) {
  const std::string_view separator = RIDGE_TRY(call.string(0, {}));
  if (separator.empty()) return call.runtime.fail("the separator of 'split' cannot be empty");
  std::string_view rest = self(call);
  std::vector<std::string_view> pieces;
  while (pieces.size() < most) {
    const size_t at = from_right ? RIDGE_TRY(rfind_text(call.runtime, rest, separator))
                                 : RIDGE_TRY(find_text(call.runtime, rest, separator));
    if (at == std::string_view::npos) break;
    RIDGE_TRY(call.runtime.charge_bytes(sizeof(Value)));
    const std::string_view before = rest.substr(0, at);
    const std::string_view after = rest.substr(at + separator.size());
    pieces.push_back(from_right ? after : before);
    rest = from_right ? before : after;
  }
  pieces.push_back(rest);
  if (from_right) std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

Result<Value> split_from(const Call& call, bool from_right) {
  const int64_t limit = RIDGE_TRY(call.integer(1, -1));
  const uint64_t most = limit < 0 ? UINT64_MAX : static_cast<uint64_t>(limit);
  const bool at_space = !call.has(0) || call.arguments[0].is_none();
  return texts(call.runtime, at_space ? RIDGE_TRY(split_at_space(call, most, from_right))
                                      : RIDGE_TRY(split_at(call, most, from_right)));
}
Result<Value> split(const Call& call) { return split_from(call, false); }
Result<Value> rsplit(const Call& call) { return split_from(call, true); }
Result<Value> splitlines(const Call& call) {
  RIDGE_TRY(call.runtime.charge_bytes(self(call).size()));
  return texts(call.runtime, split_lines(self(call)));
}

Result<Value> partition(const Call& call) {
  const std::string_view separator = RIDGE_TRY(call.string(0, {}));
  if (separator.empty()) return call.runtime.fail("the separator of 'partition' cannot be empty");
  const std::string_view whole = self(call);
  const size_t at = RIDGE_TRY(find_text(call.runtime, whole, separator));
  const bool found = at != std::string_view::npos;
  std::vector<Value> parts;
  parts.push_back(RIDGE_TRY(call.runtime.text(std::string(whole.substr(0, at)))));
  parts.push_back(RIDGE_TRY(call.runtime.text(std::string(found ? separator : std::string_view()))));
  parts.push_back(RIDGE_TRY(call.runtime.text(std::string(found ? whole.substr(at + separator.size()) : ""))));
  return call.runtime.list(std::move(parts), ListKind::tuple);
}

// startswith and endswith take one string or a tuple of them.
Result<Value> has_affix(const Call& call, bool at_start) {
  const Value& affix = call.arguments[0];
  const std::vector<Value> candidates = affix.is_tuple() ? affix.items() : std::vector<Value>{affix};
  for (const Value& candidate : candidates) {
    if (!candidate.is_string())
      return call.runtime.fail(fmt::format("a string is needed, not {}", candidate.type_name()));
    const std::string& part = candidate.string();
    RIDGE_TRY(call.runtime.charge_scan(std::min(part.size(), self(call).size())));
    if (at_start ? self(call).starts_with(part) : self(call).ends_with(part)) return Value::boolean(true);
  }
  return Value::boolean(false);
}
Result<Value> startswith(const Call& call) { return has_affix(call, true); }
Result<Value> endswith(const Call& call) { return has_affix(call, false); }

Result<Value> removeprefix(const Call& call) {
  const std::string_view affix = RIDGE_TRY(call.string(0, {}));
  RIDGE_TRY(call.runtime.charge_scan(std::min(affix.size(), self(call).size())));
  return call.runtime.text(self(call).starts_with(affix) ? self(call).substr(affix.size()) : self(call));
}
Result<Value> removesuffix(const Call& call) {
  const std::string_view affix = RIDGE_TRY(call.string(0, {}));
  RIDGE_TRY(call.runtime.charge_scan(std::min(affix.size(), self(call).size())));
  return call.runtime.text(self(call).ends_with(affix) ? self(call).substr(0, self(call).size() - affix.size())
                                                       : self(call));
}

Result<Value> join(const Call& call) {
  Writer out(call.runtime);
  bool is_first = true;
  for (const Value& item : RIDGE_TRY(call.runtime.elements(call.arguments[0]))) {
    if (!item.is_string()) return call.runtime.fail(fmt::format("'join' needs strings, not {}", item.type_name()));
    if (!is_first) RIDGE_TRY(out.add(self(call)));
    is_first = false;
    RIDGE_TRY(out.add(item.string()));
  }
  return Value::text(out.take());
}

// Position in characters, or -1.
Result<Value> find(const Call& call) {
  const std::string_view part = RIDGE_TRY(call.string(0, {}));
  const size_t at = RIDGE_TRY(find_text(call.runtime, self(call), part));
  if (at == std::string_view::npos) return Value::integer(-1);
  RIDGE_TRY(call.runtime.charge_scan(at));
  return Value::integer(static_cast<int64_t>(text::length(std::string_view(self(call)).substr(0, at))));
}
Result<Value> rfind(const Call& call) {
  const std::string_view part = RIDGE_TRY(call.string(0, {}));
  const size_t at = RIDGE_TRY(rfind_text(call.runtime, self(call), part));
  if (at == std::string_view::npos) return Value::integer(-1);
  RIDGE_TRY(call.runtime.charge_scan(at));
  return Value::integer(static_cast<int64_t>(text::length(std::string_view(self(call)).substr(0, at))));
}

Result<Value> count(const Call& call) {
  const std::string_view part = RIDGE_TRY(call.string(0, {}));
  RIDGE_TRY(call.runtime.charge_scan(self(call).size()));
  if (part.empty()) return Value::integer(static_cast<int64_t>(text::length(self(call))) + 1);
  int64_t total = 0;
  for (size_t at = 0;; at += part.size(), ++total) {
    at = RIDGE_TRY(find_text(call.runtime, self(call), part, at));
    if (at == std::string_view::npos) return Value::integer(total);
  }
}

template <class Predicate>
Result<Value> all_of(const Call& call, Predicate holds) {
  const std::string& whole = self(call);
  RIDGE_TRY(call.runtime.charge_scan(whole.size()));
  for (size_t at = 0; at < whole.size();) {
    if (!holds(text::next(whole, at))) return Value::boolean(false);
  }
  return Value::boolean(!whole.empty());
}
Result<Value> isdigit(const Call& call) { return all_of(call, text::is_digit); }
Result<Value> isalpha(const Call& call) { return all_of(call, text::is_alphabetic); }
Result<Value> isspace(const Call& call) { return all_of(call, text::is_space); }
Result<Value> isalnum(const Call& call) {
  return all_of(call, [](char32_t c) { return text::is_digit(c) || text::is_alphabetic(c); });
}

constexpr std::array<Native, 25> kStringMethods = {{{"capitalize", "", capitalize},
                                                    {"count", "sub", count},
                                                    {"endswith", "suffix", endswith},
                                                    {"find", "sub", find},
                                                    {"format", "*", format},
                                                    {"isalnum", "", isalnum},
                                                    {"isalpha", "", isalpha},
                                                    {"isdigit", "", isdigit},
                                                    {"isspace", "", isspace},
                                                    {"join", "iterable", join},
                                                    {"lower", "", lower},
                                                    {"lstrip", "chars=", lstrip},
                                                    {"partition", "sep", partition},
                                                    {"removeprefix", "prefix", removeprefix},
                                                    {"removesuffix", "suffix", removesuffix},
                                                    {"replace", "old,new,count=", replace},
                                                    {"rfind", "sub", rfind},
                                                    {"rsplit", "sep=,maxsplit=", rsplit},
                                                    {"rstrip", "chars=", rstrip},
                                                    {"split", "sep=,maxsplit=", split},
                                                    {"splitlines", "", splitlines},
                                                    {"startswith", "prefix", startswith},
                                                    {"strip", "chars=", strip},
                                                    {"title", "", title},
                                                    {"upper", "", upper}}};

// --- Dicts and lists -----------------------------------------------------------------------------------------------

Result<Value> items(const Call& call) {
  return call.runtime.list(RIDGE_TRY(dict_items(call.runtime, call.self.entries())));
}
Result<Value> keys(const Call& call) { return call.runtime.list(RIDGE_TRY(call.runtime.elements(call.self))); }
Result<Value> values(const Call& call) {
  std::vector<Value> result;
  for (const auto& entry : call.self.entries()) result.push_back(entry.second);
  return call.runtime.list(std::move(result));
}
Result<Value> get(const Call& call) {
  const Value* found = RIDGE_TRY(ridge::jinja::find(call.runtime, call.self.entries(), call.arguments[0]));
  if (found != nullptr) return *found;
  return call.has(1) ? call.arguments[1] : Value::none();
}
Result<Value> copy(const Call& call) { return call.self; }

Result<Value> count_items(const Call& call) {
  int64_t total = 0;
  for (const Value& item : call.self.items()) total += RIDGE_TRY(equals(call.runtime, item, call.arguments[0])) ? 1 : 0;
  return Value::integer(total);
}
Result<Value> index_of(const Call& call) {
  const std::vector<Value>& list = call.self.items();
  for (size_t i = 0; i < list.size(); ++i) {
    if (RIDGE_TRY(equals(call.runtime, list[i], call.arguments[0]))) return Value::integer(static_cast<int64_t>(i));
  }
  return call.runtime.fail("'index': the value is not in the list");
}

Result<Value> changes(const Call& call) {
  return call.runtime.fail(
      fmt::format("a template cannot change {}; build a new one with + or use a namespace", call.self.type_name()));
}

constexpr std::array<Native, 9> kDictMethods = {{{"clear", "*", changes},
                                                 {"copy", "", copy},
                                                 {"get", "key,default=", get},
                                                 {"items", "", items},
                                                 {"keys", "", keys},
                                                 {"pop", "*", changes},
                                                 {"setdefault", "*", changes},
                                                 {"update", "*", changes},
                                                 {"values", "", values}}};

constexpr std::array<Native, 10> kListMethods = {{{"append", "*", changes},
                                                  {"clear", "*", changes},
                                                  {"copy", "", copy},
                                                  {"count", "value", count_items},
                                                  {"extend", "*", changes},
                                                  {"index", "value", index_of},
                                                  {"insert", "*", changes},
                                                  {"pop", "*", changes},
                                                  {"remove", "*", changes},
                                                  {"sort", "*", changes}}};

// --- The loop variable ---------------------------------------------------------------------------------------------

Result<Value> cycle(const Call& call) {
  const std::vector<Value>& choices = call.raw.positional;
  if (choices.empty()) return call.runtime.fail("'loop.cycle' needs at least one value");
  return choices[call.self.as_loop().index % choices.size()];
}

// Whether the arguments differ from those of the last call in this loop.
Result<Value> changed(const Call& call) {
  Loop& loop = call.self.as_loop();
  const Value now = RIDGE_TRY(call.runtime.list(call.raw.positional, ListKind::tuple));
  const bool same = loop.has_changed && RIDGE_TRY(equals(call.runtime, loop.changed, now));
  if (!loop.items.empty()) loop.changed = now;  // a loop that has ended keeps nothing alive
  loop.has_changed = true;
  return Value::boolean(!same);
}

constexpr std::array<Native, 2> kLoopMethods = {{{"changed", "*", changed}, {"cycle", "*", cycle}}};

}  // namespace

Result<Value> replace_text(Runtime& runtime, std::string_view text, const Call& call) {
  const std::string_view old = RIDGE_TRY(call.string(0, {}));
  const std::string_view with = RIDGE_TRY(call.string(1, {}));
  int64_t left = call.has(2) && call.arguments[2].is_none() ? -1 : RIDGE_TRY(call.integer(2, -1));
  Writer out(runtime);
  size_t begin = 0;
  while (left != 0) {
    size_t found = begin;
    size_t end = begin;
    if (old.empty()) {  // before every character, and at the end
      RIDGE_TRY(out.add(with));
      if (begin == text.size()) break;
      text::next(text, end);
      RIDGE_TRY(out.add(text.substr(begin, end - begin)));
      RIDGE_TRY(runtime.charge_steps(1));
    } else {
      found = RIDGE_TRY(find_text(runtime, text, old, begin));
      if (found == std::string_view::npos) break;
      RIDGE_TRY(out.add(text.substr(begin, found - begin)));
      RIDGE_TRY(out.add(with));
      end = found + old.size();
    }
    begin = end;
    --left;
  }
  RIDGE_TRY(out.add(text.substr(begin)));
  return Value::text(out.take());
}

Result<std::vector<Value>> dict_items(Runtime& runtime, const Entries& entries) {
  std::vector<Value> result;
  result.reserve(entries.size());
  for (const auto& [key, value] : entries) result.push_back(RIDGE_TRY(runtime.list({key, value}, ListKind::tuple)));
  return result;
}

std::vector<std::string_view> split_lines(std::string_view whole) {
  std::vector<std::string_view> lines;
  size_t begin = 0;
  for (size_t at = 0; at < whole.size();) {
    const size_t end = at;
    const char32_t c = text::next(whole, at);
    const bool breaks = (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
    if (!breaks) continue;
    if (c == '\r' && at < whole.size() && whole[at] == '\n') ++at;
    lines.push_back(whole.substr(begin, end - begin));
    begin = at;
  }
  if (begin < whole.size()) lines.push_back(whole.substr(begin));
  return lines;
}

const Native* find_method(Kind kind, std::string_view name) {
  switch (kind) {
    case Kind::string:
      return find_row(kStringMethods, name);
    case Kind::dict:
      return find_row(kDictMethods, name);
    case Kind::list:
      return find_row(kListMethods, name);
    case Kind::loop:
      return find_row(kLoopMethods, name);
    default:
      return nullptr;
  }
}

}  // namespace ridge::jinja
