// Lists and ranges of numbers as people write them for measurements: "1,2", "1-4", "0-512+128", "128-1024*2".
//
//   std::vector<uint64_t> depths = RIDGE_TRY(parse_numbers("0-512+128", "--depth"));     // 0, 128, 256, 384, 512
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ridge {

// Parts with commas between them: a number, first-last, first-last+step or first-last*factor. Numbers keep their order,
// and repeated ones stay. At most 1,000 numbers, each at most 2³². Usage error naming `flag`.
Result<std::vector<uint64_t>> parse_numbers(std::string_view text, std::string_view flag);

}  // namespace ridge
