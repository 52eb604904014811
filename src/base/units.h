// Sizes as people write them: "300M", "1.5GiB", "4096". K, M, G, T are powers of 1024, with or without "iB" or "B".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace ridge {

inline constexpr uint64_t kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB;

// Bytes, > 0. Fails with a usage error that quotes the text.
Result<uint64_t> parse_bytes(std::string_view text);

// "98.4 MB" is what disks say; we say "93.8 MiB". Three significant digits.
std::string format_bytes(uint64_t bytes);

// The number with thousands separated by commas: 98,362,432.
std::string format_count(uint64_t n);

// A number with its noun: "1 token", "2 tokens"; "1 entry" and "2 entries" with `many` given.
std::string counted(uint64_t n, std::string_view one, std::string_view many = {});

// Rounds up to a multiple of `step` (a power of two or not).
constexpr uint64_t round_up(uint64_t n, uint64_t step) { return (n + step - 1) / step * step; }

}  // namespace ridge
