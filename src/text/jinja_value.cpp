#include "text/jinja_value.h"

#include <algorithm>

namespace ridge::jinja {

Value Value::undefined(std::string_view name) {
  Value value;
  value.data_ = Undefined{name};
  return value;
}

Value Value::none() {
  Value value;
  value.data_ = std::monostate{};
  return value;
}

Value Value::boolean(bool flag) {
  Value value;
  value.data_ = flag;
  return value;
}

Value Value::integer(int64_t number) {
  Value value;
  value.data_ = number;
  return value;
}

Value Value::real(double number) {
  Value value;
  value.data_ = number;
  return value;
}

Value Value::text(std::string characters) {
  Value value;
  value.data_ = std::make_shared<const std::string>(std::move(characters));
  return value;
}

Value Value::list(std::vector<Value> items, ListKind kind) {
  int nesting = 0;
  for (const Value& item : items) nesting = std::max(nesting, item.nesting());
  Value value;
  value.data_ = std::make_shared<const List>(List{std::move(items), kind, nesting + 1});
  return value;
}

Value Value::dict(Entries entries) {
  int nesting = 0;
  for (const auto& [key, item] : entries) nesting = std::max({nesting, key.nesting(), item.nesting()});
  Value value;
  value.data_ = std::make_shared<const Dict>(Dict{std::move(entries), nesting + 1});
  return value;
}

Value Value::name_space(Namespace* space) {
  Value value;
  value.data_ = space;
  return value;
}

Value Value::loop(std::shared_ptr<Loop> loop) {
  Value value;
  value.data_ = std::move(loop);
  return value;
}

Value Value::native(const Native* native, Value self) {
  const int nesting = self.nesting() + 1;
  Value value;
  value.data_ = std::make_shared<const Bound>(Bound{native, std::move(self), nullptr, nesting});
  return value;
}

Value Value::macro(const MacroObject* macro) {
  Value value;
  value.data_ = std::make_shared<const Bound>(Bound{nullptr, Value(), macro, 1});
  return value;
}

const std::vector<Value>& Value::items() const { return std::get<std::shared_ptr<const List>>(data_)->items; }

bool Value::is_tuple() const {
  return is_list() && std::get<std::shared_ptr<const List>>(data_)->kind == ListKind::tuple;
}

const Entries& Value::entries() const { return std::get<std::shared_ptr<const Dict>>(data_)->entries; }

bool Value::truthy() const {
  switch (kind()) {
    case Kind::undefined:
    case Kind::none:
      return false;
    case Kind::boolean:
    case Kind::integer:
      return as_integer() != 0;
    case Kind::real:
      return as_real() != 0.0;
    case Kind::string:
      return !string().empty();
    case Kind::list:
      return !items().empty();
    case Kind::dict:
      return !entries().empty();
    case Kind::name_space:
    case Kind::loop:
    case Kind::callable:
      return true;
  }
  return false;
}

int Value::nesting() const {
  switch (kind()) {
    case Kind::list:
      return std::get<std::shared_ptr<const List>>(data_)->nesting;
    case Kind::dict:
      return std::get<std::shared_ptr<const Dict>>(data_)->nesting;
    case Kind::callable:
      return bound().nesting;
    default:
      return 0;
  }
}

std::string_view Value::type_name() const {
  switch (kind()) {
    case Kind::undefined:
      return "an undefined value";
    case Kind::none:
      return "none";
    case Kind::boolean:
      return "a boolean";
    case Kind::integer:
      return "an integer";
    case Kind::real:
      return "a float";
    case Kind::string:
      return "a string";
    case Kind::list:
      return is_tuple() ? "a tuple" : "a list";
    case Kind::dict:
      return "a dict";
    case Kind::name_space:
      return "a namespace";
    case Kind::loop:
      return "a loop variable";
    case Kind::callable:
      return "a function";
  }
  return "a value";
}

}  // namespace ridge::jinja
