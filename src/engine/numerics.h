// The three ways to compute (docs/numerics.md), and their names on the command line.
//
// Not for: choosing kernels (kernels/choose.h) or types of the cache (model/kv_cache.h).
//
//   Numerics numerics = RIDGE_TRY(parse_numerics("exact"));
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace ridge {

// standard: the arithmetic contract, int8 activations for quantised weights; exact: float activations and cache, the
// reference; fast: kernels outside the contract too, where they are faster here, so bytes may differ between machines.
enum class Numerics : uint8_t { standard, exact, fast };
Result<Numerics> parse_numerics(std::string_view name);  // "default", "exact", "fast"
const char* name_of(Numerics numerics);

}  // namespace ridge
