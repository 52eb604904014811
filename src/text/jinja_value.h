// The values a template computes with: Python's, as far as chat templates need them.
//
// Not for: what operators do (jinja_operators.h), filters and methods (jinja_builtins.h).
//
// Values are immutable and shared, so copying one is cheap and no cycle can be built. Namespaces, which templates may
// change, and macros belong to the runtime; a value only points at them.
//
//   Value greeting = Value::text("hi");
//   if (greeting.is_string()) use(greeting.string());
//   Value pair = Value::list({greeting, Value::integer(3)}, ListKind::tuple);
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace ridge::jinja {

class Value;
struct Native;
struct MacroObject;
struct Loop;
struct List;
struct Dict;
struct Namespace;
struct Bound;

enum class Kind : uint8_t { undefined, none, boolean, integer, real, string, list, dict, name_space, loop, callable };
enum class ListKind : uint8_t { list, tuple };

using Entries = std::vector<std::pair<Value, Value>>;

class Value {
 public:
  Value() = default;
  // `name`: what was looked up, for messages; it must outlive the value (it lies in the parsed template).
  static Value undefined(std::string_view name = {});
  static Value none();
  static Value boolean(bool value);
  static Value integer(int64_t value);
  static Value real(double value);
  static Value text(std::string value);
  static Value list(std::vector<Value> items, ListKind kind = ListKind::list);
  static Value dict(Entries entries);  // keys must differ
  static Value name_space(Namespace* space);
  static Value loop(std::shared_ptr<Loop> loop);
  static Value native(const Native* native, Value self);
  static Value macro(const MacroObject* macro);

  Kind kind() const { return static_cast<Kind>(data_.index()); }
  bool is_undefined() const { return kind() == Kind::undefined; }
  bool is_none() const { return kind() == Kind::none; }
  bool is_boolean() const { return kind() == Kind::boolean; }
  bool is_integer() const { return kind() == Kind::integer; }
  bool is_real() const { return kind() == Kind::real; }
  bool is_string() const { return kind() == Kind::string; }
  bool is_list() const { return kind() == Kind::list; }  // or tuple
  bool is_dict() const { return kind() == Kind::dict; }
  bool is_name_space() const { return kind() == Kind::name_space; }
  bool is_number() const { return is_integer() || is_real() || is_boolean(); }  // booleans are numbers, as in Python

  std::string_view undefined_name() const { return std::get<0>(data_).name; }
  bool as_boolean() const { return std::get<bool>(data_); }
  int64_t as_integer() const { return is_boolean() ? as_boolean() : std::get<int64_t>(data_); }  // boolean or integer
  double as_real() const {
    return is_real() ? std::get<double>(data_) : static_cast<double>(as_integer());
  }  // a number
  const std::string& string() const { return *std::get<StringPointer>(data_); }
  const std::vector<Value>& items() const;
  bool is_tuple() const;
  const Entries& entries() const;
  Namespace& space() const { return *std::get<Namespace*>(data_); }
  Loop& as_loop() const { return *std::get<std::shared_ptr<Loop>>(data_); }
  const Bound& bound() const { return *std::get<std::shared_ptr<const Bound>>(data_); }

  // As Python's bool().
  bool truthy() const;
  // How many containers lie inside each other: 0 for a scalar, 1 for a flat list.
  int nesting() const;
  // "string", "number", …, for messages.
  std::string_view type_name() const;

 private:
  struct Undefined {
    std::string_view name;
  };
  using StringPointer = std::shared_ptr<const std::string>;
  std::variant<Undefined, std::monostate, bool, int64_t, double, StringPointer, std::shared_ptr<const List>,
               std::shared_ptr<const Dict>, Namespace*, std::shared_ptr<Loop>, std::shared_ptr<const Bound>>
      data_;
};

struct List {
  std::vector<Value> items;
  ListKind kind = ListKind::list;
  int nesting = 1;
};

struct Dict {
  Entries entries;  // in the order they were written
  int nesting = 1;
};

// What `namespace()` makes: the only thing a template can change.
struct Namespace {
  Entries entries;
};

// The `loop` variable. `items` is emptied when the loop ends, so that a loop kept elsewhere holds nothing alive.
struct Loop {
  std::vector<Value> items;
  size_t index = 0;
  size_t length = 0;
  Value changed;  // arguments of the last loop.changed()
  bool has_changed = false;
};

// Something that can be called: a built-in function or method with its receiver, or a macro.
struct Bound {
  const Native* native = nullptr;
  Value self;
  const MacroObject* macro = nullptr;
  int nesting = 1;
};

}  // namespace ridge::jinja
