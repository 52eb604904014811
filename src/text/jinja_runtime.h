// Runs a parsed template. One Runtime renders once; it owns what the template makes (scopes, namespaces, macros).
//
// Not for: what single operators, filters and methods do (jinja_operators.h, jinja_builtins.h).
//
// A template comes from a model file, so it is hostile until proven otherwise: steps, bytes made, recursion, nesting of
// values and the length of ranges are bounded, and passing a bound is an error with its place, never a crash.
//
//   Runtime runtime(source, {});
//   std::string text = RIDGE_TRY(runtime.render(block, {{Value::text("messages"), messages}}));
#pragma once

#include <cstdint>
#include <ctime>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "text/jinja_ast.h"
#include "text/jinja_value.h"

namespace ridge::jinja {

struct Limits {
  uint64_t steps = 20'000'000;   // operations and elements visited; about a second
  uint64_t bytes = 64ull << 20;  // of all text and lists made, output included, whether kept or not
  int depth = 250;               // evaluations inside each other: expressions, blocks, macros
  int64_t range = 100'000;       // elements of a range
  int nesting = 64;              // lists and dicts inside each other
};

struct Settings {
  Limits limits = {};
  std::optional<std::tm> now = std::nullopt;  // what strftime_now formats; absent: the local time
};

// Arguments of a call, before they are matched with parameters.
struct Arguments {
  std::vector<Value> positional = {};
  std::vector<std::pair<std::string, Value>> named = {};
};

class Runtime;

// What a built-in receives. `arguments` has one entry per parameter; those left out are undefined.
struct Call {
  Runtime& runtime;
  const Value& self;  // the filtered or tested value, or the receiver of a method
  std::span<const Value> arguments;
  const Arguments& raw;

  // Argument i, or the default.
  bool has(size_t i) const { return !arguments[i].is_undefined(); }
  Result<int64_t> integer(size_t i, int64_t standard) const;
  Result<std::string_view> string(size_t i, std::string_view standard) const;
  bool flag(size_t i, bool standard) const { return has(i) ? arguments[i].truthy() : standard; }
};

// A built-in filter, test, method or function. `parameters`: names with commas; `=` after one that may be left out;
// "*" alone: the function reads `raw` itself.
struct Native {
  std::string_view name;
  std::string_view parameters;
  Result<Value> (*function)(const Call& call);
};

struct Scope {
  Scope* parent = nullptr;
  std::vector<std::pair<std::string_view, Value>> names = {};
  bool captured = false;  // a macro was made here, so it must outlive its block
};

struct MacroObject {
  const Statement* definition;
  Scope* scope;
};

class Runtime {
 public:
  Runtime(std::string_view source, const Settings& settings) : source_(source), settings_(settings) {}
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // `globals`: text keys. Everything given must outlive the call.
  Result<std::string> render(const Block& block, const Entries& globals);

  // For operators and built-ins.
  Error fail(std::string_view message) const;  // at the expression that is being evaluated
  Result<void> charge_steps(uint64_t steps);
  Result<void> charge_bytes(uint64_t bytes);
  Result<void> charge_scan(uint64_t bytes);  // for reading so many bytes of text
  uint64_t bytes_left() const { return settings_.limits.bytes - bytes_; }
  const Settings& settings() const { return settings_; }
  Result<Value> text(std::string characters);
  Result<Value> list(std::vector<Value> items, ListKind kind = ListKind::list);
  Result<Value> dict(Entries entries);
  Result<Value> name_space(Entries entries);
  Result<Value> attribute(const Value& object, std::string_view name);
  Result<Value> item(const Value& object, const Value& key);
  Result<Value> call(const Value& callee, const Arguments& arguments, const MacroObject* caller = nullptr);
  // Matches the arguments with the parameters of a filter, test, method or function and runs it.
  Result<Value> invoke(const Native& native, const Value& self, const Arguments& arguments);
  Result<Value> filter(std::string_view name, const Value& subject, const Arguments& arguments);
  Result<bool> test(std::string_view name, const Value& subject, const Arguments& arguments);
  // What a loop over the value visits: items, keys, characters.
  Result<std::vector<Value>> elements(const Value& value);

 private:
  enum class Flow : uint8_t { normal, leave, next };
  class ScopeGuard;  // a scope of its own, while it lives
  // One more level of recursion, while it lives.
  class Level {
   public:
    explicit Level(Runtime& runtime) : runtime_(runtime) { ++runtime.depth_; }
    ~Level() { --runtime_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Runtime& runtime_;
  };
  Result<void> check_depth() const;

  Result<Flow> run(const Block& block);
  Result<Flow> run(const Statement& statement);
  Result<Flow> run_simple(const Statement& statement);
  Result<Flow> run_condition(const Statement& statement);
  Result<Flow> run_loop(const Statement& statement);
  Result<std::vector<Value>> loop_items(const Statement& statement);
  Result<Flow> run_captured(const Statement& statement);
  Result<Flow> run_with(const Statement& statement);
  Result<Flow> run_call_block(const Statement& statement);
  Result<void> write(std::string_view text);
  Result<void> assign(const Target& target, const Value& value);
  Result<void> set_name(std::string_view name, Value value);
  Result<Value> lookup(std::string_view name);
  Result<const MacroObject*> make_macro(const Statement& definition);
  Result<Value> call_macro(const MacroObject& macro, const Arguments& arguments, const MacroObject* caller);
  Result<void> bind_parameters(const Statement& definition, const Arguments& arguments);

  Result<Value> evaluate(const Expression& node);
  Result<Value> evaluate_container(const Expression& node);
  Result<Value> evaluate_slice(const Expression& node);
  Result<Value> evaluate_call(const Expression& node, const MacroObject* caller);
  Result<Value> evaluate_filter(const Expression& node, const Value* block_text);
  Result<Value> evaluate_test(const Expression& node);
  Result<Value> evaluate_compare(const Expression& node);
  Result<Value> evaluate_logic(const Expression& node);
  Result<Value> evaluate_concat(const Expression& node);
  Result<Value> evaluate_operator(const Expression& node);
  Result<Arguments> evaluate_arguments(const Expression& node);
  Result<Value> loop_attribute(const Value& loop, std::string_view name);

  std::string_view source_;
  Settings settings_;
  uint64_t steps_ = 0;
  uint64_t bytes_ = 0;
  int depth_ = 0;
  uint32_t at_ = 0;
  std::string* out_ = nullptr;
  Scope root_;
  Scope* scope_ = &root_;
  std::vector<std::unique_ptr<Scope>> kept_;
  std::deque<Namespace> spaces_;
  std::deque<MacroObject> macros_;
};

}  // namespace ridge::jinja
