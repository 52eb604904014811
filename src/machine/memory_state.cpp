#include "machine/memory_state.h"

#include <algorithm>
#include <charconv>

#include "base/units.h"
#include "machine/small_file.h"

namespace ridge {
namespace {

std::optional<uint64_t> kib_field(const std::string& text, std::string_view key) {
  auto kib = field_of(text, key);
  if (!kib) return std::nullopt;
  return *kib * kKiB;
}

// Every line of /proc/self/maps begins with "begin-end" in hexadecimal digits.
void count_mappings(std::string_view maps, MemoryState& state) {
  while (!maps.empty()) {
    const size_t end_of_line = std::min(maps.find('\n'), maps.size());
    const std::string_view line = maps.substr(0, end_of_line);
    maps.remove_prefix(std::min(end_of_line + 1, maps.size()));
    uint64_t begin = 0, end = 0;
    const char* last = line.data() + line.size();
    auto dash = std::from_chars(line.data(), last, begin, 16);
    if (dash.ec != std::errc() || dash.ptr == last) continue;
    if (std::from_chars(dash.ptr + 1, last, end, 16).ec != std::errc() || end < begin) continue;
    ++state.mappings;
    state.mapped_bytes += end - begin;
  }
}

}  // namespace

MemoryState memory_state(const std::string& root) {
  MemoryState state;
  const std::string status = read_small_file(root + "/proc/self/status").value_or("");
  const std::string rollup = read_small_file(root + "/proc/self/smaps_rollup").value_or("");
  if (auto pss = kib_field(rollup, "Pss:")) {
    state.pss = *pss;
  } else {
    state.pss = kib_field(status, "VmRSS:").value_or(0);
    state.pss_is_rss = true;
  }
  state.page_tables = kib_field(status, "VmPTE:").value_or(0);
  const std::string meminfo = read_small_file(root + "/proc/meminfo").value_or("");
  state.available = kib_field(meminfo, "MemAvailable:");
  if (!state.available) state.available = kib_field(meminfo, "MemFree:");
  const auto swap_total = kib_field(meminfo, "SwapTotal:"), swap_free = kib_field(meminfo, "SwapFree:");
  if (swap_total && swap_free) state.swap_used = *swap_total - std::min(*swap_total, *swap_free);
  count_mappings(read_small_file(root + "/proc/self/maps").value_or(""), state);
  state.cgroup = cgroup_memory(root);
  return state;
}

std::optional<int64_t> growth(const std::optional<uint64_t>& before, const std::optional<uint64_t>& after) {
  if (!before || !after) return std::nullopt;
  return growth(*before, *after);
}

}  // namespace ridge
