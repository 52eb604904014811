// The small text files of /proc and /sys, which may be missing, empty or unreadable.
//
//   std::optional<uint64_t> kib = field_of(read_small_file(root + "/proc/meminfo").value_or(""), "SwapFree:");
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ridge {

// At most 4 MiB of a file; nothing if it cannot be read.
std::optional<std::string> read_small_file(const std::string& path);
// The same without white space at its ends; nothing also if that is all there is.
std::optional<std::string> read_word(const std::string& path);
// The unsigned number that a text begins with, after blanks.
std::optional<uint64_t> number_at(std::string_view text);
// The number after `key` at the beginning of a line.
std::optional<uint64_t> field_of(std::string_view text, std::string_view key);

}  // namespace ridge
