// Times as people write them: "30s", "500ms", "2m", "1.5h"; a bare number is seconds.
//
//   std::chrono::nanoseconds hold = RIDGE_TRY(parse_duration("30s", "--hold"));
#pragma once

#include <chrono>
#include <string_view>

#include "base/result.h"

namespace ridge {

// 0 to a year. Usage error naming `flag`.
Result<std::chrono::nanoseconds> parse_duration(std::string_view text, std::string_view flag);

}  // namespace ridge
