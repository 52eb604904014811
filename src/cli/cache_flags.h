// --map, --task and --mask-absent: of commands that run models whose caches are chosen from.
#pragma once

#include <optional>
#include <string>

#include "cli/common.h"

namespace ridge::cli {

struct CacheFlags {
  std::optional<std::string> map, task;
  std::optional<double> mask_absent;
};
void add_cache_flags(CLI::App& command, CacheFlags& flags);
// Usage error: a factor outside of 0 … 1, a task without a map. Bad input: a map that cannot be read.
Result<void> apply(const CacheFlags& flags, EngineOptions& options);
// Of a masking engine, once: that its answers depend on the cache.
void tell_masking(const Engine& engine);
// The changes of the task since the last call, which `told` counts.
void tell_switches(const Engine& engine, uint64_t& told);

}  // namespace ridge::cli
