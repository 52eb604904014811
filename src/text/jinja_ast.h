// The parsed template: expressions and statements as plain data. `at` is a byte offset in the source, for messages.
//
// Not for: evaluation (jinja_runtime.h).
//
//   Block block = RIDGE_TRY(parse(source));
//   for (const StatementPointer& s : block) if (s->kind == Statement::Kind::output) …
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "text/jinja_value.h"

namespace ridge::jinja {

struct Expression;
struct Statement;
using ExpressionPointer = std::unique_ptr<Expression>;
using StatementPointer = std::unique_ptr<Statement>;
using Block = std::vector<StatementPointer>;

enum class Operator : uint8_t {
  add,
  subtract,
  multiply,
  divide,
  floor_divide,
  modulo,
  power,
  negate,
  plus,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  in,
  not_in,
};

struct Argument {
  enum class Kind : uint8_t { positional, named, spread, spread_named };  // x, name=x, *x, **x
  Kind kind = Kind::positional;
  std::string name = {};
  ExpressionPointer value;
};

struct Expression {
  enum class Kind : uint8_t {
    constant,
    name,         // name
    list,         // children
    tuple,        // children
    dict,         // children: key, value, key, value, …
    attribute,    // children[0].name
    item,         // children[0][children[1]]
    slice,        // children[0][children[1]:children[2]:children[3]], each bound may be null
    call,         // children[0](arguments)
    filter,       // children[0] | name(arguments); children[0] is null in a filter block
    test,         // children[0] is name(arguments)
    unary,        // operators[0] children[0]
    binary,       // children[0] operators[0] children[1]
    compare,      // children[0] operators[0] children[1] operators[1] children[2] …
    all_of,       // children[0] and children[1] and …
    any_of,       // children[0] or children[1] or …
    negation,     // not children[0]
    concat,       // children[0] ~ children[1] ~ …
    conditional,  // children[0] if children[1] else children[2], which may be null
  };
  Kind kind = Kind::constant;
  uint32_t at = 0;
  int depth = 1;  // of the tree below
  std::string name = {};
  Value constant = {};
  std::vector<Operator> operators = {};
  std::vector<ExpressionPointer> children = {};
  std::vector<Argument> arguments = {};
};

// What `set` and `for` assign to: a name, a namespace's attribute, or several of them.
struct Target {
  std::string name = {};
  std::string attribute = {};      // of the namespace `name`, or empty
  std::vector<Target> parts = {};  // a tuple of targets, if `name` is empty
  uint32_t at = 0;
};

struct Parameter {
  std::string name;
  ExpressionPointer standard;  // the default; null: none
};

// One `if` or `elif`.
struct Branch {
  ExpressionPointer condition;
  Block body;
};

struct Statement {
  enum class Kind : uint8_t {
    text,       // text
    output,     // {{ value }}
    condition,  // branches, otherwise
    loop,       // for target in value if filter: body, otherwise
    set,        // target = value
    set_block,  // target = output of body, through `value` (a filter chain) if there is one
    macro,      // text = name, parameters, body
    call,       // value = the call, parameters of the caller, body
    filter,     // value = filter chain, body
    with,       // targets and values in `assignments`, body
    scope,      // body, in a scope of its own (generation blocks)
    leave,      // break
    next,       // continue
  };
  Kind kind = Kind::text;
  uint32_t at = 0;
  std::string text = {};
  Target target = {};
  ExpressionPointer value = {};
  ExpressionPointer filter = {};
  std::vector<Branch> branches = {};
  std::vector<Parameter> parameters = {};
  std::vector<std::pair<Target, ExpressionPointer>> assignments = {};
  Block body = {};
  Block otherwise = {};
  bool uses_caller = false, uses_varargs = false, uses_kwargs = false;  // macro, call
};

}  // namespace ridge::jinja
