#include "plan/live_budget.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"

namespace ridge {

std::optional<std::string> LiveBudget::sign(const MemoryPressure& pressure) {
  const uint64_t hits_before = limit_hits_.value_or(pressure.limit_hits);
  limit_hits_ = pressure.limit_hits;
  if (pressure.available && *pressure.available < options_.floor) {
    return fmt::format("{} of memory are available, less than {}", format_bytes(*pressure.available),
                       format_bytes(options_.floor));
  }
  if (pressure.limit_hits > hits_before) return "the memory cgroup is at its limit";
  if (pressure.stalled > options_.stalled) {
    return fmt::format("tasks waited for memory {:.0f} % of the last 10 s", pressure.stalled * 100);
  }
  return std::nullopt;
}

LiveStep LiveBudget::look(const MemoryPressure& pressure, uint64_t given_back, Clock::time_point now) {
  const std::optional<std::string> trouble = sign(pressure);
  if (trouble) troubled_ = now;
  if (stepped_ && now - *stepped_ < options_.rest) return {};
  if (trouble) {
    stepped_ = now;
    const uint64_t short_by = options_.floor - std::min(options_.floor, pressure.available.value_or(options_.floor));
    return {.give = std::max(options_.step, short_by), .take = 0, .why = *trouble};
  }
  if (given_back == 0 || (troubled_ && now - *troubled_ < options_.calm)) return {};
  // Taking must not bring the trouble back: twice the floor stays free after it.
  const uint64_t step = std::min(options_.step, given_back);
  if (pressure.available && *pressure.available < 2 * options_.floor + step) return {};
  stepped_ = now;
  return {.give = 0, .take = step, .why = "there is room again"};
}

uint64_t default_floor(uint64_t available) {
  constexpr uint64_t kShare = 32, kMost = 256 * kMiB;
  return std::min(available / kShare, kMost);
}

}  // namespace ridge
