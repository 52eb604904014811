// The half of Runtime that evaluates expressions, and calls.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "text/jinja_builtins.h"
#include "text/jinja_operators.h"
#include "text/jinja_runtime.h"
#include "text/jinja_text.h"

namespace ridge::jinja {
namespace {

struct Range {
  int64_t start, stop, step;
};

// Python's slice.indices(length).
Range slice_range(std::optional<int64_t> start, std::optional<int64_t> stop, int64_t step, int64_t length) {
  const int64_t low = step < 0 ? -1 : 0;
  const int64_t high = step < 0 ? length - 1 : length;
  const auto bound = [&](std::optional<int64_t> value, int64_t standard) {
    if (!value) return standard;
    const int64_t from_end = *value < 0 ? (*value < -length ? -1 : *value + length) : *value;
    return std::clamp(from_end, low, high);
  };
  return {bound(start, step < 0 ? high : low), bound(stop, step < 0 ? low : high), step};
}

std::vector<size_t> slice_indices(const Range& range) {
  std::vector<size_t> indices;
  for (int64_t i = range.start; range.step > 0 ? i < range.stop : i > range.stop;) {
    indices.push_back(static_cast<size_t>(i));
    // No overflow: i lies in [-1, length], and one step beyond it ends the loop.
    if (range.step > 0 ? range.step > range.stop - i : range.step < range.stop - i) break;
    i += range.step;
  }
  return indices;
}

std::optional<size_t> position(int64_t index, size_t length) {
  const auto size = static_cast<int64_t>(length);
  if (index < -size || index >= size) return std::nullopt;
  return static_cast<size_t>(index < 0 ? index + size : index);
}

// "old", required, from the next entry of "old,new,count=".
std::pair<std::string_view, bool> next_parameter(std::string_view& parameters) {
  const size_t comma = parameters.find(',');
  std::string_view name = parameters.substr(0, comma);
  parameters = comma == std::string_view::npos ? std::string_view() : parameters.substr(comma + 1);
  const bool required = !name.ends_with('=');
  if (!required) name.remove_suffix(1);
  return {name, required};
}

}  // namespace

Result<int64_t> Call::integer(size_t i, int64_t standard) const {
  if (!has(i)) return standard;
  if (arguments[i].is_integer() || arguments[i].is_boolean()) return arguments[i].as_integer();
  return runtime.fail(fmt::format("argument {} must be an integer, not {}", i + 1, arguments[i].type_name()));
}

Result<std::string_view> Call::string(size_t i, std::string_view standard) const {
  if (!has(i)) return standard;
  if (arguments[i].is_string()) return std::string_view(arguments[i].string());
  return runtime.fail(fmt::format("argument {} must be a string, not {}", i + 1, arguments[i].type_name()));
}

Result<Value> Runtime::evaluate(const Expression& node) {
  at_ = node.at;
  RIDGE_TRY(charge_steps(1));
  const Level level(*this);
  RIDGE_TRY(check_depth());
  switch (node.kind) {
    case Expression::Kind::constant:
      return node.constant;
    case Expression::Kind::name:
      return lookup(node.name);
    case Expression::Kind::list:
    case Expression::Kind::tuple:
    case Expression::Kind::dict:
      return evaluate_container(node);
    case Expression::Kind::slice:
      return evaluate_slice(node);
    case Expression::Kind::call:
      return evaluate_call(node, nullptr);
    case Expression::Kind::filter:
      return evaluate_filter(node, nullptr);
    case Expression::Kind::test:
      return evaluate_test(node);
    case Expression::Kind::compare:
      return evaluate_compare(node);
    case Expression::Kind::all_of:
    case Expression::Kind::any_of:
    case Expression::Kind::negation:
    case Expression::Kind::conditional:
      return evaluate_logic(node);
    case Expression::Kind::concat:
      return evaluate_concat(node);
    case Expression::Kind::attribute:
    case Expression::Kind::item:
    case Expression::Kind::unary:
    case Expression::Kind::binary:
      return evaluate_operator(node);
  }
  return Value();
}

Result<Value> Runtime::evaluate_container(const Expression& node) {
  if (node.kind == Expression::Kind::dict) {
    Entries entries;
    for (size_t i = 0; i + 1 < node.children.size(); i += 2) {
      const Value key = RIDGE_TRY(evaluate(*node.children[i]));
      Value value = RIDGE_TRY(evaluate(*node.children[i + 1]));
      at_ = node.at;
      RIDGE_TRY(insert(*this, entries, key, std::move(value)));
    }
    return dict(std::move(entries));
  }
  std::vector<Value> items;
  items.reserve(node.children.size());
  for (const ExpressionPointer& child : node.children) items.push_back(RIDGE_TRY(evaluate(*child)));
  at_ = node.at;
  return list(std::move(items), node.kind == Expression::Kind::tuple ? ListKind::tuple : ListKind::list);
}

Result<Value> Runtime::evaluate_slice(const Expression& node) {
  const Value object = RIDGE_TRY(evaluate(*node.children[0]));
  std::array<std::optional<int64_t>, 3> bounds;
  for (size_t i = 0; i < bounds.size(); ++i) {
    if (!node.children[i + 1]) continue;
    const Value bound = RIDGE_TRY(evaluate(*node.children[i + 1]));
    at_ = node.at;
    if (bound.is_none()) continue;
    if (!bound.is_integer() && !bound.is_boolean()) {
      return fail(fmt::format("the bounds of a slice must be integers, not {}", bound.type_name()));
    }
    bounds[i] = bound.as_integer();
  }
  at_ = node.at;
  const int64_t step = bounds[2].value_or(1);
  if (step == 0) return fail("the step of a slice cannot be 0");
  if (object.is_list()) {
    const std::vector<Value>& items = object.items();
    const auto indices = slice_indices(slice_range(bounds[0], bounds[1], step, static_cast<int64_t>(items.size())));
    RIDGE_TRY(charge_bytes(indices.size() * sizeof(size_t)));
    std::vector<Value> chosen;
    chosen.reserve(indices.size());
    for (const size_t i : indices) chosen.push_back(items[i]);
    return list(std::move(chosen), object.is_tuple() ? ListKind::tuple : ListKind::list);
  }
  if (!object.is_string()) {
    if (object.is_undefined()) return fail(fmt::format("{} and cannot be sliced", describe_undefined(object)));
    return Value::undefined();
  }
  const std::string& whole = object.string();
  RIDGE_TRY(charge_scan(whole.size()));
  const Range range = slice_range(bounds[0], bounds[1], step, static_cast<int64_t>(text::length(whole)));
  if (step == 1) {
    if (range.start >= range.stop) return text({});
    const size_t begin = text::offset(whole, static_cast<size_t>(range.start));
    const auto size = static_cast<size_t>(range.stop - range.start);
    return text(whole.substr(begin, text::offset(std::string_view(whole).substr(begin), size)));
  }
  RIDGE_TRY(charge_bytes(2 * sizeof(size_t) * whole.size()));  // for the offsets and the indices
  const std::vector<size_t> offsets = text::offsets(whole);
  std::string chosen;
  for (const size_t i : slice_indices(range)) chosen.append(whole, offsets[i], offsets[i + 1] - offsets[i]);
  return text(std::move(chosen));
}

Result<Arguments> Runtime::evaluate_arguments(const Expression& node) {
  Arguments arguments;
  for (const Argument& argument : node.arguments) {
    Value value = RIDGE_TRY(evaluate(*argument.value));
    at_ = node.at;
    switch (argument.kind) {
      case Argument::Kind::positional:
        arguments.positional.push_back(std::move(value));
        break;
      case Argument::Kind::named:
        arguments.named.emplace_back(argument.name, std::move(value));
        break;
      case Argument::Kind::spread:
        for (Value& item : RIDGE_TRY(elements(value))) arguments.positional.push_back(item);
        break;
      case Argument::Kind::spread_named:
        if (!value.is_dict()) return fail(fmt::format("** needs a dict, not {}", value.type_name()));
        for (const auto& [key, item] : value.entries()) {
          if (!key.is_string()) return fail("the keys of a ** argument must be strings");
          RIDGE_TRY(charge_bytes(key.string().size() + sizeof(Value)));
          arguments.named.emplace_back(key.string(), item);
        }
        break;
    }
  }
  return arguments;
}

Result<Value> Runtime::evaluate_call(const Expression& node, const MacroObject* caller) {
  const Value callee = RIDGE_TRY(evaluate(*node.children[0]));
  const Arguments arguments = RIDGE_TRY(evaluate_arguments(node));
  at_ = node.at;
  return call(callee, arguments, caller);
}

Result<Value> Runtime::call(const Value& callee, const Arguments& arguments, const MacroObject* caller) {
  if (callee.is_undefined()) {
    return fail(fmt::format("{}, so it cannot be called", describe_undefined(callee)));
  }
  if (callee.kind() != Kind::callable) return fail(fmt::format("{} cannot be called", callee.type_name()));
  const Bound& bound = callee.bound();
  if (bound.macro != nullptr) return call_macro(*bound.macro, arguments, caller);
  if (caller != nullptr) return fail(fmt::format("'{}' takes no call block", bound.native->name));
  return invoke(*bound.native, bound.self, arguments);
}

Result<Value> Runtime::invoke(const Native& native, const Value& self, const Arguments& arguments) {
  const Level level(*this);
  RIDGE_TRY(check_depth());
  if (native.parameters == "*") {
    return native.function({.runtime = *this, .self = self, .arguments = {}, .raw = arguments});
  }
  constexpr size_t kMostParameters = 6;
  std::array<Value, kMostParameters> bound;
  size_t count = 0;
  size_t named_used = 0;
  for (std::string_view rest = native.parameters; !rest.empty(); ++count) {
    RIDGE_CHECK(count < kMostParameters, "no built-in has more parameters");
    const auto [name, required] = next_parameter(rest);
    bool given = count < arguments.positional.size();
    if (given) bound[count] = arguments.positional[count];
    for (const auto& [key, value] : arguments.named) {
      if (key != name) continue;
      if (given) return fail(fmt::format("'{}' gets its argument '{}' twice", native.name, name));
      bound[count] = value;
      given = true;
      ++named_used;
    }
    if (required && !given) return fail(fmt::format("'{}' needs the argument '{}'", native.name, name));
  }
  if (arguments.positional.size() > count) {
    return fail(
        fmt::format("'{}' takes at most {} arguments, not {}", native.name, count, arguments.positional.size()));
  }
  if (named_used < arguments.named.size()) {
    return fail(fmt::format("'{}' gets an argument of a name it does not know; it has: {}", native.name,
                            native.parameters.empty() ? "none" : native.parameters));
  }
  return native.function(
      {.runtime = *this, .self = self, .arguments = std::span(bound).first(count), .raw = arguments});
}

Result<Value> Runtime::filter(std::string_view name, const Value& subject, const Arguments& arguments) {
  const Native* native = find_filter(name);
  if (native == nullptr)
    return fail(fmt::format("the filter '{}' is not known here (docs/chat-templates.md lists them)", name));
  return invoke(*native, subject, arguments);
}

Result<bool> Runtime::test(std::string_view name, const Value& subject, const Arguments& arguments) {
  const Native* native = find_test(name);
  if (native == nullptr)
    return fail(fmt::format("the test '{}' is not known here (docs/chat-templates.md lists them)", name));
  return RIDGE_TRY(invoke(*native, subject, arguments)).truthy();
}

Result<Value> Runtime::evaluate_filter(const Expression& node, const Value* block_text) {
  Value subject;
  if (!node.children[0]) {
    RIDGE_CHECK(block_text != nullptr, "only a filter block has a filter without a subject");
    subject = *block_text;
  } else if (block_text != nullptr) {  // a chain: the block's text belongs to its innermost filter
    subject = RIDGE_TRY(evaluate_filter(*node.children[0], block_text));
  } else {
    subject = RIDGE_TRY(evaluate(*node.children[0]));
  }
  const Arguments arguments = RIDGE_TRY(evaluate_arguments(node));
  at_ = node.at;
  return filter(node.name, subject, arguments);
}

Result<Value> Runtime::evaluate_test(const Expression& node) {
  const Value subject = RIDGE_TRY(evaluate(*node.children[0]));
  const Arguments arguments = RIDGE_TRY(evaluate_arguments(node));
  at_ = node.at;
  return Value::boolean(RIDGE_TRY(test(node.name, subject, arguments)));
}

// a < b < c: each pair is compared until one fails.
Result<Value> Runtime::evaluate_compare(const Expression& node) {
  Value left = RIDGE_TRY(evaluate(*node.children[0]));
  Value result;
  for (size_t i = 0; i < node.operators.size(); ++i) {
    Value right = RIDGE_TRY(evaluate(*node.children[i + 1]));
    at_ = node.at;
    result = RIDGE_TRY(apply(*this, node.operators[i], left, right));
    if (!result.truthy()) break;
    left = std::move(right);
  }
  return result;
}

Result<Value> Runtime::evaluate_logic(const Expression& node) {
  if (node.kind == Expression::Kind::negation) {
    return Value::boolean(!RIDGE_TRY(evaluate(*node.children[0])).truthy());
  }
  if (node.kind == Expression::Kind::conditional) {
    if (RIDGE_TRY(evaluate(*node.children[1])).truthy()) return evaluate(*node.children[0]);
    return node.children[2] ? evaluate(*node.children[2]) : Result<Value>(Value());
  }
  const bool stops_at = node.kind == Expression::Kind::any_of;
  Value value;
  for (const ExpressionPointer& child : node.children) {
    value = RIDGE_TRY(evaluate(*child));
    if (value.truthy() == stops_at) break;
  }
  return value;  // as in Python, the deciding operand itself
}

Result<Value> Runtime::evaluate_concat(const Expression& node) {
  Writer joined(*this);
  for (const ExpressionPointer& child : node.children) {
    const Value value = RIDGE_TRY(evaluate(*child));
    at_ = node.at;
    RIDGE_TRY(write_text(*this, value, joined));
  }
  return Value::text(joined.take());
}

Result<Value> Runtime::evaluate_operator(const Expression& node) {
  const Value first = RIDGE_TRY(evaluate(*node.children[0]));
  if (node.kind == Expression::Kind::attribute) {
    at_ = node.at;
    return attribute(first, node.name);
  }
  if (node.kind == Expression::Kind::unary) {
    at_ = node.at;
    return apply(*this, node.operators[0], first);
  }
  const Value second = RIDGE_TRY(evaluate(*node.children[1]));
  at_ = node.at;
  if (node.kind == Expression::Kind::item) return item(first, second);
  return apply(*this, node.operators[0], first, second);
}

Result<Value> Runtime::attribute(const Value& object, std::string_view name) {
  if (object.is_undefined()) {
    return fail(fmt::format("{}; it has no attribute '{}'", describe_undefined(object), name));
  }
  if (object.kind() == Kind::loop) return loop_attribute(object, name);
  if (const Native* method = find_method(object.kind(), name)) {
    Value bound = Value::native(method, object);
    RIDGE_TRY(charge_bytes(sizeof(Bound)));
    if (bound.nesting() > settings_.limits.nesting) return fail("lists or dicts are nested too deep");
    return bound;
  }
  if (!object.is_dict() && !object.is_name_space()) return Value::undefined(name);
  const Entries& entries = object.is_dict() ? object.entries() : object.space().entries;
  RIDGE_TRY(charge_steps(entries.size() / 16));
  for (const auto& [key, value] : entries) {
    if (key.is_string() && key.string() == name) return value;
  }
  return Value::undefined(name);
}

Result<Value> Runtime::item(const Value& object, const Value& key) {
  if (object.is_undefined()) return fail(fmt::format("{}; it has no items", describe_undefined(object)));
  if (object.is_dict()) {
    if (const Value* found = RIDGE_TRY(find(*this, object.entries(), key))) return *found;
  }
  const bool is_index = key.is_integer() || key.is_boolean();
  if (object.is_list() && is_index) {
    const auto at = position(key.as_integer(), object.items().size());
    return at ? object.items()[*at] : Value::undefined();
  }
  if (object.is_string() && is_index) {
    const std::string& whole = object.string();
    RIDGE_TRY(charge_scan(whole.size()));
    const auto at = position(key.as_integer(), text::length(whole));
    if (!at) return Value::undefined();
    const size_t begin = text::offset(whole, *at);
    size_t end = begin;
    text::next(whole, end);
    return text(whole.substr(begin, end - begin));
  }
  // As in Jinja, x['upper'] falls back to the attribute. The name in an "undefined" must outlive the value: drop it.
  if (!key.is_string()) return Value::undefined();
  Value found = RIDGE_TRY(attribute(object, key.string()));
  return found.is_undefined() ? Value::undefined() : found;
}

Result<Value> Runtime::loop_attribute(const Value& value, std::string_view name) {
  const Loop& loop = value.as_loop();
  const auto index = static_cast<int64_t>(loop.index);
  const auto length = static_cast<int64_t>(loop.length);
  const bool alive = !loop.items.empty();
  if (name == "index") return Value::integer(index + 1);
  if (name == "index0") return Value::integer(index);
  if (name == "revindex") return Value::integer(length - index);
  if (name == "revindex0") return Value::integer(length - index - 1);
  if (name == "first") return Value::boolean(index == 0);
  if (name == "last") return Value::boolean(index + 1 == length);
  if (name == "length") return Value::integer(length);
  if (name == "depth") return Value::integer(1);  // only recursive loops go deeper
  if (name == "depth0") return Value::integer(0);
  if (name == "previtem") return alive && index > 0 ? loop.items[loop.index - 1] : Value::undefined("previtem");
  if (name == "nextitem")
    return alive && index + 1 < length ? loop.items[loop.index + 1] : Value::undefined("nextitem");
  if (const Native* method = find_method(Kind::loop, name)) return Value::native(method, value);
  return Value::undefined(name);
}

Result<std::vector<Value>> Runtime::elements(const Value& value) {
  std::vector<Value> result;
  switch (value.kind()) {
    case Kind::undefined:
      return result;
    case Kind::list:
      RIDGE_TRY(charge_bytes(value.items().size() * sizeof(Value)));
      RIDGE_TRY(charge_steps(value.items().size()));
      return value.items();
    case Kind::dict:
      RIDGE_TRY(charge_bytes(value.entries().size() * sizeof(Value)));
      RIDGE_TRY(charge_steps(value.entries().size()));
      for (const auto& entry : value.entries()) result.push_back(entry.first);
      return result;
    case Kind::string: {
      const std::string& whole = value.string();
      for (size_t begin = 0, end = 0; begin < whole.size(); begin = end) {
        text::next(whole, end);
        RIDGE_TRY(charge_bytes(sizeof(Value)));
        RIDGE_TRY(charge_steps(1));
        result.push_back(RIDGE_TRY(text(whole.substr(begin, end - begin))));
      }
      return result;
    }
    default:
      return fail(fmt::format("a list, a dict or a string is needed here, not {}", value.type_name()));
  }
}

}  // namespace ridge::jinja
