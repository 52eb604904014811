#include "text/jinja_runtime.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/units.h"
#include "text/jinja_builtins.h"
#include "text/jinja_lexer.h"
#include "text/jinja_operators.h"

namespace ridge::jinja {

class Runtime::ScopeGuard {
 public:
  ScopeGuard(Runtime& runtime, Scope* parent)
      : runtime_(runtime), outer_(runtime.scope_), own_(std::make_unique<Scope>(Scope{.parent = parent})) {
    runtime.scope_ = own_.get();
  }
  ~ScopeGuard() {
    keep_if_captured();
    runtime_.scope_ = outer_;
  }
  ScopeGuard(const ScopeGuard&) = delete;
  ScopeGuard& operator=(const ScopeGuard&) = delete;

  // An empty scope again, for the next turn of a loop.
  void renew() {
    Scope* parent = own_->parent;
    if (keep_if_captured()) own_ = std::make_unique<Scope>(Scope{.parent = parent});
    own_->names.clear();
    runtime_.scope_ = own_.get();
  }

 private:
  bool keep_if_captured() {
    const bool captured = own_->captured;
    if (captured) runtime_.kept_.push_back(std::move(own_));
    return captured;
  }

  Runtime& runtime_;
  Scope* outer_;
  std::unique_ptr<Scope> own_;
};

Error Runtime::fail(std::string_view message) const { return error_at(source_, at_, message); }

Result<void> Runtime::check_depth() const {
  if (depth_ <= settings_.limits.depth) return {};
  return fail("expressions, blocks and macros are nested too deep, or a macro calls itself without end");
}

Result<void> Runtime::charge_steps(uint64_t steps) {
  if (steps > settings_.limits.steps - steps_) {
    return fail(
        fmt::format("the template takes more than {} steps; it is faulty or made to hang", settings_.limits.steps));
  }
  steps_ += steps;
  return {};
}

Result<void> Runtime::charge_bytes(uint64_t bytes) {
  if (bytes > bytes_left()) {
    return fail(
        fmt::format("the template makes more than {} bytes of text and lists; it is faulty or made to fill the memory",
                    settings_.limits.bytes));
  }
  bytes_ += bytes;
  return {};
}

Result<void> Runtime::charge_scan(uint64_t bytes) {
  constexpr uint64_t kBytesPerStep = 64;
  return charge_steps(bytes / kBytesPerStep);
}

Result<Value> Runtime::text(std::string characters) {
  RIDGE_TRY(charge_bytes(sizeof(std::string) + characters.size()));
  return Value::text(std::move(characters));
}

Result<Value> Runtime::list(std::vector<Value> items, ListKind kind) {
  RIDGE_TRY(charge_bytes(sizeof(List) + items.size() * sizeof(Value)));
  Value value = Value::list(std::move(items), kind);
  if (value.nesting() > settings_.limits.nesting) return fail("lists or dicts are nested too deep");
  return value;
}

Result<Value> Runtime::dict(Entries entries) {
  RIDGE_TRY(charge_bytes(sizeof(Dict) + entries.size() * sizeof(Entries::value_type)));
  Value value = Value::dict(std::move(entries));
  if (value.nesting() > settings_.limits.nesting) return fail("lists or dicts are nested too deep");
  return value;
}

Result<Value> Runtime::name_space(Entries entries) {
  RIDGE_TRY(charge_bytes(sizeof(Namespace) + entries.size() * sizeof(Entries::value_type)));
  spaces_.push_back({std::move(entries)});
  return Value::name_space(&spaces_.back());
}

Result<std::string> Runtime::render(const Block& block, const Entries& globals) {
  for (const auto& [name, value] : globals) root_.names.emplace_back(name.string(), value);
  std::string out;
  out_ = &out;
  RIDGE_TRY(run(block));
  return out;
}

Result<void> Runtime::write(std::string_view text) {
  RIDGE_TRY(charge_bytes(text.size()));
  out_->append(text);
  return {};
}

Result<Value> Runtime::lookup(std::string_view name) {
  for (const Scope* scope = scope_; scope != nullptr; scope = scope->parent) {
    RIDGE_TRY(charge_steps(scope->names.size() / 16));
    for (const auto& [key, value] : scope->names) {
      if (key == name) return value;
    }
  }
  if (const Native* native = find_function(name)) return Value::native(native, Value());
  return Value::undefined(name);
}

Result<void> Runtime::set_name(std::string_view name, Value value) {
  RIDGE_TRY(charge_steps(scope_->names.size() / 16));
  for (auto& [key, old] : scope_->names) {
    if (key == name) {
      old = std::move(value);
      return {};
    }
  }
  RIDGE_TRY(charge_bytes(sizeof(value) + sizeof(name)));
  scope_->names.emplace_back(name, std::move(value));
  return {};
}

Result<void> Runtime::assign(const Target& target, const Value& value) {
  at_ = target.at;
  if (!target.attribute.empty()) {
    const Value space = RIDGE_TRY(lookup(target.name));
    if (!space.is_name_space()) {
      return fail(fmt::format("'{}' is {}; only attributes of a namespace can be set", target.name, space.type_name()));
    }
    RIDGE_TRY(charge_bytes(sizeof(Entries::value_type)));
    return insert(*this, space.space().entries, RIDGE_TRY(text(target.attribute)), value);
  }
  if (!target.name.empty()) return set_name(target.name, value);
  const std::vector<Value> parts = RIDGE_TRY(elements(value));
  if (parts.size() != target.parts.size()) {
    return fail(fmt::format("{} cannot be unpacked into {}", counted(parts.size(), "value"),
                            counted(target.parts.size(), "name")));
  }
  for (size_t i = 0; i < parts.size(); ++i) RIDGE_TRY(assign(target.parts[i], parts[i]));
  return {};
}

Result<Runtime::Flow> Runtime::run(const Block& block) {
  for (const StatementPointer& statement : block) {
    const Flow flow = RIDGE_TRY(run(*statement));
    if (flow != Flow::normal) return flow;
  }
  return Flow::normal;
}

Result<Runtime::Flow> Runtime::run(const Statement& statement) {
  at_ = statement.at;
  RIDGE_TRY(charge_steps(1));
  const Level level(*this);
  RIDGE_TRY(check_depth());
  switch (statement.kind) {
    case Statement::Kind::condition:
      return run_condition(statement);
    case Statement::Kind::loop:
      return run_loop(statement);
    case Statement::Kind::set_block:
    case Statement::Kind::filter:
      return run_captured(statement);
    case Statement::Kind::with:
    case Statement::Kind::scope:
      return run_with(statement);
    case Statement::Kind::call:
      return run_call_block(statement);
    case Statement::Kind::leave:
      return Flow::leave;
    case Statement::Kind::next:
      return Flow::next;
    case Statement::Kind::text:
    case Statement::Kind::output:
    case Statement::Kind::set:
    case Statement::Kind::macro:
      return run_simple(statement);
  }
  return Flow::normal;
}

Result<Runtime::Flow> Runtime::run_simple(const Statement& statement) {
  if (statement.kind == Statement::Kind::text) {
    RIDGE_TRY(write(statement.text));
  } else if (statement.kind == Statement::Kind::output) {
    const Value value = RIDGE_TRY(evaluate(*statement.value));
    at_ = statement.at;
    RIDGE_TRY(write(value.is_string() ? std::string_view(value.string()) : RIDGE_TRY(to_text(*this, value))));
  } else if (statement.kind == Statement::Kind::set) {
    RIDGE_TRY(assign(statement.target, RIDGE_TRY(evaluate(*statement.value))));
  } else {
    RIDGE_TRY(set_name(statement.text, Value::macro(RIDGE_TRY(make_macro(statement)))));
  }
  return Flow::normal;
}

Result<Runtime::Flow> Runtime::run_condition(const Statement& statement) {
  for (const Branch& branch : statement.branches) {
    if (RIDGE_TRY(evaluate(*branch.condition)).truthy()) return run(branch.body);
  }
  return run(statement.otherwise);
}

// The elements that pass the loop's filter.
Result<std::vector<Value>> Runtime::loop_items(const Statement& statement) {
  std::vector<Value> items = RIDGE_TRY(elements(RIDGE_TRY(evaluate(*statement.value))));
  if (!statement.filter) return items;
  std::vector<Value> chosen;
  ScopeGuard scope(*this, scope_);
  for (Value& item : items) {
    scope.renew();
    RIDGE_TRY(assign(statement.target, item));
    if (RIDGE_TRY(evaluate(*statement.filter)).truthy()) chosen.push_back(std::move(item));
  }
  return chosen;
}

Result<Runtime::Flow> Runtime::run_loop(const Statement& statement) {
  auto loop = std::make_shared<Loop>();
  loop->items = RIDGE_TRY(loop_items(statement));
  loop->length = loop->items.size();
  if (loop->length == 0) return run(statement.otherwise);
  Result<Flow> flow = Flow::normal;
  ScopeGuard scope(*this, scope_);
  for (; loop->index < loop->length; ++loop->index) {
    scope.renew();
    flow = [&]() -> Result<Flow> {
      RIDGE_TRY(set_name("loop", Value::loop(loop)));
      RIDGE_TRY(assign(statement.target, loop->items[loop->index]));
      return run(statement.body);
    }();
    if (!flow.ok() || flow.value() == Flow::leave) break;
  }
  loop->items.clear();
  loop->changed = Value();
  return flow.ok() ? Result<Flow>(Flow::normal) : flow;
}

// {% set x %}…{% endset %} and {% filter f %}…{% endfilter %}: the body's output becomes a value.
Result<Runtime::Flow> Runtime::run_captured(const Statement& statement) {
  std::string* const outer = out_;
  std::string body;
  out_ = &body;
  Result<Flow> flow = [&]() -> Result<Flow> {
    const ScopeGuard scope(*this, scope_);
    return run(statement.body);
  }();
  out_ = outer;
  if (!flow.ok() || flow.value() != Flow::normal) return flow;
  Value value = RIDGE_TRY(text(std::move(body)));
  if (statement.value) value = RIDGE_TRY(evaluate_filter(*statement.value, &value));
  if (statement.kind == Statement::Kind::set_block) {
    RIDGE_TRY(assign(statement.target, value));
  } else {
    RIDGE_TRY(write(RIDGE_TRY(to_text(*this, value))));
  }
  return Flow::normal;
}

Result<Runtime::Flow> Runtime::run_with(const Statement& statement) {
  std::vector<Value> values;
  for (const auto& assignment : statement.assignments) values.push_back(RIDGE_TRY(evaluate(*assignment.second)));
  const ScopeGuard scope(*this, scope_);
  for (size_t i = 0; i < values.size(); ++i) RIDGE_TRY(assign(statement.assignments[i].first, values[i]));
  return run(statement.body);
}

Result<Runtime::Flow> Runtime::run_call_block(const Statement& statement) {
  const MacroObject* caller = RIDGE_TRY(make_macro(statement));
  const Value value = RIDGE_TRY(evaluate_call(*statement.value, caller));
  RIDGE_TRY(write(RIDGE_TRY(to_text(*this, value))));
  return Flow::normal;
}

Result<const MacroObject*> Runtime::make_macro(const Statement& definition) {
  RIDGE_TRY(charge_bytes(sizeof(MacroObject) + sizeof(Scope)));
  for (Scope* scope = scope_; scope != nullptr && !scope->captured; scope = scope->parent) scope->captured = true;
  macros_.push_back({&definition, scope_});
  return &macros_.back();
}

Result<Value> Runtime::call_macro(const MacroObject& macro, const Arguments& arguments, const MacroObject* caller) {
  const Level level(*this);
  RIDGE_TRY(check_depth());
  const Statement& definition = *macro.definition;
  if (caller != nullptr && !definition.uses_caller) {
    return fail(fmt::format("the macro '{}' does not use its caller; use it without a call block", definition.text));
  }
  std::string* const outer = out_;
  std::string body;
  out_ = &body;
  const Result<Flow> flow = [&]() -> Result<Flow> {
    const ScopeGuard scope(*this, macro.scope);
    if (definition.uses_caller) {
      RIDGE_TRY(set_name("caller", caller != nullptr ? Value::macro(caller) : Value::undefined("caller")));
    }
    RIDGE_TRY(bind_parameters(definition, arguments));
    return run(definition.body);
  }();
  out_ = outer;
  if (!flow.ok()) return flow.error();
  return text(std::move(body));
}

Result<void> Runtime::bind_parameters(const Statement& definition, const Arguments& arguments) {
  const std::vector<Parameter>& parameters = definition.parameters;
  const size_t direct = std::min(arguments.positional.size(), parameters.size());
  std::vector<bool> used(arguments.named.size(), false);
  for (size_t i = 0; i < parameters.size(); ++i) {
    Value value = i < direct ? arguments.positional[i] : Value::undefined(parameters[i].name);
    bool given = i < direct;
    for (size_t k = 0; k < arguments.named.size(); ++k) {
      if (arguments.named[k].first != parameters[i].name) continue;
      if (given) return fail(fmt::format("the macro '{}' gets '{}' twice", definition.text, parameters[i].name));
      value = arguments.named[k].second;
      given = used[k] = true;
    }
    if (!given && parameters[i].standard) value = RIDGE_TRY(evaluate(*parameters[i].standard));
    RIDGE_TRY(set_name(parameters[i].name, std::move(value)));
  }
  if (definition.uses_varargs) {
    const auto rest = arguments.positional.begin() + static_cast<std::ptrdiff_t>(direct);
    const std::vector<Value> extra(rest, arguments.positional.end());
    RIDGE_TRY(set_name("varargs", RIDGE_TRY(list(extra, ListKind::tuple))));
  } else if (arguments.positional.size() > parameters.size()) {
    return fail(fmt::format("the macro '{}' takes {} arguments, not {}", definition.text, parameters.size(),
                            arguments.positional.size()));
  }
  Entries extra;
  for (size_t k = 0; k < used.size(); ++k) {
    if (used[k]) continue;
    const auto& [name, value] = arguments.named[k];
    if (!definition.uses_kwargs)
      return fail(fmt::format("the macro '{}' has no parameter '{}'", definition.text, name));
    extra.emplace_back(RIDGE_TRY(text(name)), value);
  }
  if (definition.uses_kwargs) RIDGE_TRY(set_name("kwargs", RIDGE_TRY(dict(std::move(extra)))));
  return {};
}

}  // namespace ridge::jinja
