#include "plan/live_budget.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"

namespace ridge {

std::optional<std::string> LiveBudget::sign(const MemoryPressure& pressure) {
  const uint64_t hits_before = limit_hits_.value_or(pressure.limit_hits);
  limit_hits_ = pressure.limit_hits;
  if (pressure.available && *pressure.available < options_.floor) {
    return fmt::format("MemAvailable {} < floor {}", format_bytes(*pressure.available), format_bytes(options_.floor));
  }
  // Whoever reads files fills any cgroup with their pages and hits its limit, which costs nobody anything as long as
  // the kernel can drop those: what counts is what is left without them.
  const bool tight = !pressure.cgroup_left || *pressure.cgroup_left < options_.floor;
  if (pressure.limit_hits > hits_before && tight) {
    return fmt::format("the memory cgroup hit its limit {} times", pressure.limit_hits - hits_before);
  }
  if (pressure.stalled > options_.stalled) {
    return fmt::format("tasks waited for memory {:.0f} % of the last 10 s", pressure.stalled * 100);
  }
  return std::nullopt;
}

void LiveBudget::note_trouble(Clock::time_point now) {
  constexpr std::chrono::milliseconds kLongest = std::chrono::minutes(10);
  // Trouble soon after something was taken: that was too early. Long after it: the past says nothing any more.
  if (took_) calm_ = now - *took_ < calm_ ? std::min(2 * calm_, kLongest) : options_.calm;
  took_.reset();
  troubled_ = now;
}

// Taking must not bring the trouble back: twice the floor stays free after it.
bool LiveBudget::room_for(uint64_t bytes, const MemoryPressure& pressure) const {
  if (pressure.available && *pressure.available < 2 * options_.floor + bytes) return false;
  return !pressure.cgroup_left || *pressure.cgroup_left >= bytes;
}

LiveStep LiveBudget::look(const MemoryPressure& pressure, uint64_t given_back, Clock::time_point now) {
  const std::optional<std::string> trouble = sign(pressure);
  if (trouble) note_trouble(now);
  if (stepped_ && now - *stepped_ < options_.rest) return {};
  if (trouble) {
    stepped_ = now;
    const uint64_t short_by = options_.floor - std::min(options_.floor, pressure.available.value_or(options_.floor));
    return {.give = std::max(options_.step, short_by), .take = 0, .why = *trouble};
  }
  if (given_back == 0 || (troubled_ && now - *troubled_ < calm_)) return {};
  const uint64_t step = std::min(options_.step, given_back);
  if (!room_for(step, pressure)) return {};
  stepped_ = took_ = now;
  return {.give = 0, .take = step, .why = "there is room again"};
}

uint64_t default_floor(uint64_t available) {
  constexpr uint64_t kShare = 32, kMost = 256 * kMiB;
  return std::min(available / kShare, kMost);
}

}  // namespace ridge
