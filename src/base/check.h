// RIDGE_CHECK(condition, "why it must hold"): a programmer error ends the program with exit code 70, in every build.
// Never for input: a bad file is a Result (result.h).
#pragma once

namespace ridge {

[[noreturn]] void check_failed(const char* file, int line, const char* condition, const char* message);

}  // namespace ridge

#define RIDGE_CHECK(condition, message) \
  ((condition) ? static_cast<void>(0) : ::ridge::check_failed(__FILE__, __LINE__, #condition, message))
