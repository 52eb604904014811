// A small file, read at once past the page cache.
//
// Not for weights (memory/) and not for what can be parsed as it comes (file_stream.h).
//
//   std::vector<uint8_t> bytes = RIDGE_TRY(read_whole_file("spiece.model", 64 * kMiB));
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace ridge {

// Bad input if the file is not there, is no regular file, or has more than `most_bytes`: found before anything is
// allocated.
Result<std::vector<uint8_t>> read_whole_file(const std::string& path, uint64_t most_bytes);

}  // namespace ridge
