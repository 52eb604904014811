// Tests: what may stand behind `is`, and in select and selectattr.
#include <array>

#include <fmt/format.h>

#include "text/jinja_builtins.h"
#include "text/jinja_operators.h"
#include "text/jinja_text.h"

namespace ridge::jinja {
namespace {

Result<Value> yes(bool holds) { return Value::boolean(holds); }

Result<Value> is_defined(const Call& call) { return yes(!call.self.is_undefined()); }
Result<Value> is_undefined(const Call& call) { return yes(call.self.is_undefined()); }
Result<Value> is_none(const Call& call) { return yes(call.self.is_none()); }
Result<Value> is_boolean(const Call& call) { return yes(call.self.is_boolean()); }
Result<Value> is_true(const Call& call) { return yes(call.self.is_boolean() && call.self.as_boolean()); }
Result<Value> is_false(const Call& call) { return yes(call.self.is_boolean() && !call.self.as_boolean()); }
Result<Value> is_integer(const Call& call) { return yes(call.self.is_integer()); }
Result<Value> is_float(const Call& call) { return yes(call.self.is_real()); }
Result<Value> is_number(const Call& call) { return yes(call.self.is_number()); }
Result<Value> is_string(const Call& call) { return yes(call.self.is_string()); }
Result<Value> is_mapping(const Call& call) { return yes(call.self.is_dict()); }
Result<Value> is_callable(const Call& call) { return yes(call.self.kind() == Kind::callable); }

bool is_collection(const Value& value) {
  return value.is_string() || value.is_list() || value.is_dict() || value.is_undefined();
}
Result<Value> is_sequence(const Call& call) { return yes(is_collection(call.self)); }
Result<Value> is_iterable(const Call& call) { return yes(is_collection(call.self) || call.self.kind() == Kind::loop); }

Result<Value> remainder(const Call& call, const Value& divisor) {
  return apply(call.runtime, Operator::modulo, call.self, divisor);
}
Result<Value> is_even(const Call& call) { return yes(!RIDGE_TRY(remainder(call, Value::integer(2))).truthy()); }
Result<Value> is_odd(const Call& call) {
  return apply(call.runtime, Operator::equal, RIDGE_TRY(remainder(call, Value::integer(2))), Value::integer(1));
}
Result<Value> is_divisible(const Call& call) { return yes(!RIDGE_TRY(remainder(call, call.arguments[0])).truthy()); }

Result<Value> is_in(const Call& call) { return yes(RIDGE_TRY(contains(call.runtime, call.arguments[0], call.self))); }
Result<Value> is_equal(const Call& call) { return apply(call.runtime, Operator::equal, call.self, call.arguments[0]); }
Result<Value> is_unequal(const Call& call) {
  return apply(call.runtime, Operator::not_equal, call.self, call.arguments[0]);
}
Result<Value> is_less(const Call& call) { return apply(call.runtime, Operator::less, call.self, call.arguments[0]); }
Result<Value> is_at_most(const Call& call) {
  return apply(call.runtime, Operator::less_equal, call.self, call.arguments[0]);
}
Result<Value> is_greater(const Call& call) {
  return apply(call.runtime, Operator::greater, call.self, call.arguments[0]);
}
Result<Value> is_at_least(const Call& call) {
  return apply(call.runtime, Operator::greater_equal, call.self, call.arguments[0]);
}

// Identity: for scalars the same kind and value, which is all a template can see of it.
Result<Value> is_same(const Call& call) {
  return yes(call.self.kind() == call.arguments[0].kind() &&
             RIDGE_TRY(equals(call.runtime, call.self, call.arguments[0])));
}

// As str.islower() and str.isupper(): at least one letter, and none of the other case.
Result<Value> is_lower(const Call& call) {
  const std::string whole = RIDGE_TRY(to_text(call.runtime, call.self));
  return yes(whole == text::lower(whole) && whole != text::upper(whole));
}
Result<Value> is_upper(const Call& call) {
  const std::string whole = RIDGE_TRY(to_text(call.runtime, call.self));
  return yes(whole == text::upper(whole) && whole != text::lower(whole));
}

Result<Value> is_filter(const Call& call) {
  return yes(call.self.is_string() && find_filter(call.self.string()) != nullptr);
}
Result<Value> is_test(const Call& call) {
  return yes(call.self.is_string() && find_test(call.self.string()) != nullptr);
}

constexpr std::array<Native, 38> kTests = {{{"!=", "other", is_unequal},
                                            {"<", "other", is_less},
                                            {"<=", "other", is_at_most},
                                            {"==", "other", is_equal},
                                            {">", "other", is_greater},
                                            {">=", "other", is_at_least},
                                            {"boolean", "", is_boolean},
                                            {"callable", "", is_callable},
                                            {"defined", "", is_defined},
                                            {"divisibleby", "num", is_divisible},
                                            {"eq", "other", is_equal},
                                            {"equalto", "other", is_equal},
                                            {"even", "", is_even},
                                            {"false", "", is_false},
                                            {"filter", "", is_filter},
                                            {"float", "", is_float},
                                            {"ge", "other", is_at_least},
                                            {"greaterthan", "other", is_greater},
                                            {"gt", "other", is_greater},
                                            {"in", "seq", is_in},
                                            {"integer", "", is_integer},
                                            {"iterable", "", is_iterable},
                                            {"le", "other", is_at_most},
                                            {"lessthan", "other", is_less},
                                            {"lower", "", is_lower},
                                            {"lt", "other", is_less},
                                            {"mapping", "", is_mapping},
                                            {"ne", "other", is_unequal},
                                            {"none", "", is_none},
                                            {"number", "", is_number},
                                            {"odd", "", is_odd},
                                            {"sameas", "other", is_same},
                                            {"sequence", "", is_sequence},
                                            {"string", "", is_string},
                                            {"test", "", is_test},
                                            {"true", "", is_true},
                                            {"undefined", "", is_undefined},
                                            {"upper", "", is_upper}}};

}  // namespace

const Native* find_test(std::string_view name) { return find_row(kTests, name); }

}  // namespace ridge::jinja
