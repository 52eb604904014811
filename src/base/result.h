// Errors as values: `Result<T>` is a T or an `Error`.
//
// Input, files and devices fail with a Result; a broken promise of our own code fails with RIDGE_CHECK (check.h).
// Nothing throws across a layer.
//
//   Result<int> parse(std::string_view s) {
//     if (s.empty()) return bad_input("an empty number; write a digit");
//     return 7;
//   }
//   int n = RIDGE_TRY(parse(text));      // returns the error to the caller
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/check.h"

namespace ridge {

// The value is the exit code of the program.
enum class ErrorCode : int {
  usage = 2,
  bad_input = 3,
  does_not_fit = 4,
  io = 5,
  refused = 6,
  bug = 70,
};

// One line for the reader: what, where, what was expected, what to do.
struct Error {
  ErrorCode code = ErrorCode::bug;
  std::string message;
  std::optional<uint64_t> offset = std::nullopt;  // byte offset in the file, where one is known
};

inline Error usage_error(std::string message) { return {ErrorCode::usage, std::move(message)}; }
inline Error bad_input(std::string message, std::optional<uint64_t> offset = {}) {
  return {ErrorCode::bad_input, std::move(message), offset};
}
inline Error does_not_fit(std::string message) { return {ErrorCode::does_not_fit, std::move(message)}; }
inline Error io_error(std::string message, std::optional<uint64_t> offset = {}) {
  return {ErrorCode::io, std::move(message), offset};
}

template <class T = void>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & {
    RIDGE_CHECK(ok(), "value() of a failed Result");
    return std::get<0>(state_);
  }
  const T& value() const& {
    RIDGE_CHECK(ok(), "value() of a failed Result");
    return std::get<0>(state_);
  }
  T&& value() && {
    RIDGE_CHECK(ok(), "value() of a failed Result");
    return std::get<0>(std::move(state_));
  }
  const Error& error() const& {
    RIDGE_CHECK(!ok(), "error() of a good Result");
    return std::get<1>(state_);
  }
  Error&& error() && {
    RIDGE_CHECK(!ok(), "error() of a good Result");
    return std::get<1>(std::move(state_));
  }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  void value() const { RIDGE_CHECK(ok(), "value() of a failed Result"); }
  const Error& error() const& {
    RIDGE_CHECK(!ok(), "error() of a good Result");
    return *error_;
  }
  Error&& error() && {
    RIDGE_CHECK(!ok(), "error() of a good Result");
    return std::move(*error_);
  }

 private:
  std::optional<Error> error_;
};

}  // namespace ridge

// The value of an expression of type Result, or an early return of its error (works for Result<void> too).
// A GNU statement expression, which g++ and clang both have: the call site stays one line. Each use has a name of its
// own, so that uses nest without shadowing one another.
#define RIDGE_TRY(...) RIDGE_TRY_NAMED(RIDGE_TRY_JOIN(ridge_try_result_, __COUNTER__), __VA_ARGS__)
#define RIDGE_TRY_JOIN(a, b) RIDGE_TRY_JOIN_EXPANDED(a, b)
#define RIDGE_TRY_JOIN_EXPANDED(a, b) a##b
#define RIDGE_TRY_NAMED(name, ...)                  \
  __extension__({                                   \
    auto name = (__VA_ARGS__);                      \
    if (!name.ok()) return std::move(name).error(); \
    std::move(name).value();                        \
  })
