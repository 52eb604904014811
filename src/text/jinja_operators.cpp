#include "text/jinja_operators.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "text/jinja_text.h"

namespace ridge::jinja {
namespace {

std::string_view symbol(Operator op) {
  switch (op) {
    case Operator::add:
    case Operator::plus:
      return "+";
    case Operator::subtract:
    case Operator::negate:
      return "-";
    case Operator::multiply:
      return "*";
    case Operator::divide:
      return "/";
    case Operator::floor_divide:
      return "//";
    case Operator::modulo:
      return "%";
    case Operator::power:
      return "**";
    default:
      return "comparison";
  }
}

Error cannot(const Runtime& runtime, Operator op, const Value& left, const Value& right) {
  for (const Value* value : {&left, &right}) {
    if (value->is_undefined()) {
      return runtime.fail(fmt::format("{}; it cannot be used with '{}'", describe_undefined(*value), symbol(op)));
    }
  }
  return runtime.fail(fmt::format("'{}' does not work on {} and {}", symbol(op), left.type_name(), right.type_name()));
}

Error overflow(const Runtime& runtime) { return runtime.fail("the result does not fit into a 64-bit integer"); }

bool is_whole(const Value& value) { return value.is_integer() || value.is_boolean(); }

int64_t floor_divide(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a % b < 0) != (b < 0) ? 1 : 0); }

double modulo(double a, double b) {
  const double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

// By squaring; false on overflow.
bool integer_power(int64_t base, int64_t exponent, int64_t& result) {
  result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) return false;
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) return false;
  }
  return true;
}

Result<Value> integer_arithmetic(Runtime& runtime, Operator op, int64_t a, int64_t b) {
  int64_t result = 0;
  const bool divides = op == Operator::divide || op == Operator::floor_divide || op == Operator::modulo;
  if (divides && b == 0) return runtime.fail("division by zero");
  switch (op) {
    case Operator::add:
      if (__builtin_add_overflow(a, b, &result)) return overflow(runtime);
      return Value::integer(result);
    case Operator::subtract:
      if (__builtin_sub_overflow(a, b, &result)) return overflow(runtime);
      return Value::integer(result);
    case Operator::multiply:
      if (__builtin_mul_overflow(a, b, &result)) return overflow(runtime);
      return Value::integer(result);
    case Operator::divide:
      return Value::real(static_cast<double>(a) / static_cast<double>(b));
    case Operator::floor_divide:
      if (b == -1 && a == INT64_MIN) return overflow(runtime);
      return Value::integer(floor_divide(a, b));
    case Operator::modulo:
      return Value::integer(b == -1 ? 0 : a - floor_divide(a, b) * b);
    default:  // power
      if (b < 0 && a == 0) return runtime.fail("division by zero");
      if (b < 0) return Value::real(std::pow(static_cast<double>(a), static_cast<double>(b)));
      if (!integer_power(a, b, result)) return overflow(runtime);
      return Value::integer(result);
  }
}

Result<Value> real_arithmetic(Runtime& runtime, Operator op, double a, double b) {
  const bool divides = op == Operator::divide || op == Operator::floor_divide || op == Operator::modulo;
  if (divides && b == 0.0) return runtime.fail("division by zero");
  switch (op) {
    case Operator::add:
      return Value::real(a + b);
    case Operator::subtract:
      return Value::real(a - b);
    case Operator::multiply:
      return Value::real(a * b);
    case Operator::divide:
      return Value::real(a / b);
    case Operator::floor_divide:
      return Value::real(std::floor(a / b));
    case Operator::modulo:
      return Value::real(modulo(a, b));
    default:
      return Value::real(std::pow(a, b));
  }
}

// 'ab' * 3 and [1] * 3.
Result<Value> repeat(Runtime& runtime, const Value& value, int64_t times) {
  const auto count = static_cast<uint64_t>(std::max<int64_t>(times, 0));
  if (value.is_string()) {
    Writer out(runtime);
    if (value.string().empty()) return runtime.text({});
    if (count > runtime.bytes_left() / value.string().size()) RIDGE_TRY(runtime.charge_bytes(UINT64_MAX));
    for (uint64_t i = 0; i < count; ++i) RIDGE_TRY(out.add(value.string()));
    return Value::text(out.take());
  }
  const std::vector<Value>& items = value.items();
  std::vector<Value> result;
  if (!items.empty() && count > runtime.bytes_left() / items.size() / sizeof(Value)) {
    RIDGE_TRY(runtime.charge_bytes(UINT64_MAX));
  }
  for (uint64_t i = 0; i < count && !items.empty(); ++i) result.insert(result.end(), items.begin(), items.end());
  return runtime.list(std::move(result), value.is_tuple() ? ListKind::tuple : ListKind::list);
}

Result<Value> add_sequences(Runtime& runtime, const Value& left, const Value& right) {
  if (left.is_string()) {
    Writer out(runtime);
    RIDGE_TRY(out.add(left.string()));
    RIDGE_TRY(out.add(right.string()));
    return Value::text(out.take());
  }
  std::vector<Value> joined = left.items();
  joined.insert(joined.end(), right.items().begin(), right.items().end());
  return runtime.list(std::move(joined), left.is_tuple() ? ListKind::tuple : ListKind::list);
}

Result<std::partial_ordering> order_lists(Runtime& runtime, const Value& left, const Value& right) {
  const std::vector<Value>& a = left.items();
  const std::vector<Value>& b = right.items();
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (!RIDGE_TRY(equals(runtime, a[i], b[i]))) return order(runtime, a[i], b[i]);
  }
  return std::partial_ordering(a.size() <=> b.size());
}

bool holds(Operator op, std::partial_ordering order) {
  switch (op) {
    case Operator::less:
      return order < 0;
    case Operator::less_equal:
      return order <= 0;
    case Operator::greater:
      return order > 0;
    default:
      return order >= 0;
  }
}

}  // namespace

std::string describe_undefined(const Value& value) {
  if (value.undefined_name().empty()) return "this value is undefined";
  return fmt::format("'{}' is undefined", value.undefined_name());
}

Result<void> Writer::add(std::string_view text) {
  RIDGE_TRY(runtime_.charge_bytes(text.size()));
  text_.append(text);
  return {};
}

Result<void> Writer::add(char c, uint64_t count) {
  RIDGE_TRY(runtime_.charge_bytes(count));
  text_.append(count, c);
  return {};
}

Result<Value> apply(Runtime& runtime, Operator op, const Value& left, const Value& right) {
  switch (op) {
    case Operator::equal:
      return Value::boolean(RIDGE_TRY(equals(runtime, left, right)));
    case Operator::not_equal:
      return Value::boolean(!RIDGE_TRY(equals(runtime, left, right)));
    case Operator::less:
    case Operator::less_equal:
    case Operator::greater:
    case Operator::greater_equal:
      return Value::boolean(holds(op, RIDGE_TRY(order(runtime, left, right))));
    case Operator::in:
      return Value::boolean(RIDGE_TRY(contains(runtime, right, left)));
    case Operator::not_in:
      return Value::boolean(!RIDGE_TRY(contains(runtime, right, left)));
    default:
      break;
  }
  if (is_whole(left) && is_whole(right)) return integer_arithmetic(runtime, op, left.as_integer(), right.as_integer());
  if (left.is_number() && right.is_number()) return real_arithmetic(runtime, op, left.as_real(), right.as_real());
  if (op == Operator::modulo && left.is_string()) return format_percent(runtime, left.string(), right);
  const bool left_sequence = left.is_string() || left.is_list();
  const bool right_sequence = right.is_string() || right.is_list();
  if (op == Operator::multiply && left_sequence && is_whole(right)) return repeat(runtime, left, right.as_integer());
  if (op == Operator::multiply && right_sequence && is_whole(left)) return repeat(runtime, right, left.as_integer());
  const bool same = left.kind() == right.kind() && left.is_tuple() == right.is_tuple();
  if (op == Operator::add && left_sequence && same) return add_sequences(runtime, left, right);
  return cannot(runtime, op, left, right);
}

Result<Value> apply(Runtime& runtime, Operator op, const Value& operand) {
  if (is_whole(operand)) {
    const int64_t number = operand.as_integer();
    if (op == Operator::plus) return Value::integer(number);
    if (number == INT64_MIN) return overflow(runtime);
    return Value::integer(-number);
  }
  if (operand.is_real()) return Value::real(op == Operator::plus ? operand.as_real() : -operand.as_real());
  if (operand.is_undefined()) return runtime.fail(fmt::format("{}; it has no sign", describe_undefined(operand)));
  return runtime.fail(fmt::format("a sign needs a number, not {}", operand.type_name()));
}

Result<bool> equals(Runtime& runtime, const Value& left, const Value& right) {
  RIDGE_TRY(runtime.charge_steps(1));
  if (is_whole(left) && is_whole(right)) return left.as_integer() == right.as_integer();
  if (left.is_number() && right.is_number()) return left.as_real() == right.as_real();
  if (left.kind() != right.kind()) return false;
  switch (left.kind()) {
    case Kind::undefined:
    case Kind::none:
      return true;
    case Kind::string:
      RIDGE_TRY(runtime.charge_scan(std::min(left.string().size(), right.string().size())));
      return left.string() == right.string();
    case Kind::list: {
      const std::vector<Value>& a = left.items();
      const std::vector<Value>& b = right.items();
      if (a.size() != b.size() || left.is_tuple() != right.is_tuple()) return false;
      for (size_t i = 0; i < a.size(); ++i) {
        if (!RIDGE_TRY(equals(runtime, a[i], b[i]))) return false;
      }
      return true;
    }
    case Kind::dict: {
      if (left.entries().size() != right.entries().size()) return false;
      for (const auto& [key, value] : left.entries()) {
        const Value* other = RIDGE_TRY(find(runtime, right.entries(), key));
        if (other == nullptr || !RIDGE_TRY(equals(runtime, value, *other))) return false;
      }
      return true;
    }
    case Kind::name_space:
      return &left.space() == &right.space();
    case Kind::loop:
      return &left.as_loop() == &right.as_loop();
    case Kind::callable:
      return left.bound().native == right.bound().native && left.bound().macro == right.bound().macro &&
             RIDGE_TRY(equals(runtime, left.bound().self, right.bound().self));
    default:
      return false;
  }
}

Result<std::partial_ordering> order(Runtime& runtime, const Value& left, const Value& right) {
  RIDGE_TRY(runtime.charge_steps(1));
  if (is_whole(left) && is_whole(right)) return std::partial_ordering(left.as_integer() <=> right.as_integer());
  if (left.is_number() && right.is_number()) return left.as_real() <=> right.as_real();
  if (left.is_string() && right.is_string()) {
    RIDGE_TRY(runtime.charge_scan(std::min(left.string().size(), right.string().size())));
    return std::partial_ordering(left.string().compare(right.string()) <=> 0);  // UTF-8 sorts as its code points do
  }
  if (left.is_list() && right.is_list() && left.is_tuple() == right.is_tuple())
    return order_lists(runtime, left, right);
  for (const Value* value : {&left, &right}) {
    if (value->is_undefined()) return runtime.fail(fmt::format("{}; it has no order", describe_undefined(*value)));
  }
  return runtime.fail(fmt::format("{} and {} have no order", left.type_name(), right.type_name()));
}

// A search may compare the whole needle at every byte. Short needles pay for the bytes passed, long ones beforehand for
// all that are left, since one such search could already take hours.
template <class Search>
static Result<size_t> search(Runtime& runtime, std::string_view text, std::string_view needle, Search find_in) {
  constexpr size_t kShort = 64, kBytesPerStep = 1024;
  if (needle.size() > kShort) {
    RIDGE_TRY(runtime.charge_steps(text.size() / kBytesPerStep * std::min(needle.size(), text.size())));
  }
  const auto [found, passed] = find_in(text, needle);
  RIDGE_TRY(runtime.charge_steps(1 + passed / kBytesPerStep * std::min(needle.size(), kShort)));
  return found;
}

Result<size_t> find_text(Runtime& runtime, std::string_view text, std::string_view needle, size_t start) {
  const std::string_view rest = text.substr(std::min(start, text.size()));
  return search(runtime, rest, needle, [&](std::string_view within, std::string_view what) {
    const size_t at = within.find(what);
    return at == std::string_view::npos ? std::pair(at, within.size()) : std::pair(at + start, at);
  });
}

Result<size_t> rfind_text(Runtime& runtime, std::string_view text, std::string_view needle) {
  return search(runtime, text, needle, [](std::string_view within, std::string_view what) {
    const size_t at = within.rfind(what);
    return std::pair(at, within.size() - (at == std::string_view::npos ? 0 : at));
  });
}

Result<bool> contains(Runtime& runtime, const Value& container, const Value& item) {
  if (container.is_undefined()) return false;
  if (container.is_string()) {
    if (!item.is_string()) return runtime.fail(fmt::format("'in' a string needs a string, not {}", item.type_name()));
    return RIDGE_TRY(find_text(runtime, container.string(), item.string())) != std::string_view::npos;
  }
  if (container.is_list()) {
    for (const Value& candidate : container.items()) {
      if (RIDGE_TRY(equals(runtime, candidate, item))) return true;
    }
    return false;
  }
  if (container.is_dict()) return RIDGE_TRY(find(runtime, container.entries(), item)) != nullptr;
  return runtime.fail(fmt::format("'in' needs a string, a list or a dict on its right, not {}", container.type_name()));
}

Result<const Value*> find(Runtime& runtime, const Entries& entries, const Value& key) {
  for (const auto& [candidate, value] : entries) {
    if (RIDGE_TRY(equals(runtime, candidate, key))) return &value;
  }
  return nullptr;
}

Result<void> insert(Runtime& runtime, Entries& entries, const Value& key, Value value) {
  const bool simple = key.is_string() || key.is_number() || key.is_none() || key.is_tuple();
  if (!simple) return runtime.fail(fmt::format("{} cannot be the key of a dict", key.type_name()));
  for (auto& [candidate, old] : entries) {
    if (RIDGE_TRY(equals(runtime, candidate, key))) {
      old = std::move(value);
      return {};
    }
  }
  entries.emplace_back(key, std::move(value));
  return {};
}

}  // namespace ridge::jinja
