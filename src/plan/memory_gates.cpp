#include "plan/memory_gates.h"

#include <fmt/format.h>

#include <limits>

namespace ridge {
namespace {

uint64_t minus(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

}  // namespace

std::optional<std::string> MemoryGates::before(uint64_t bytes, const MemoryState& now) const {
  const std::string next = format_bytes(bytes);
  if (now.available && minus(*now.available, bytes) < options_.available) {
    return fmt::format("the next context needs {}, of {} available; the gate keeps {} (--stop-available)", next,
                       format_bytes(*now.available), format_bytes(options_.available));
  }
  if (now.cgroup.left && minus(*now.cgroup.left, bytes) < options_.cgroup_left) {
    return fmt::format("the next context needs {}, but {} is left until the limit ({}), of which {} stay free", next,
                       format_bytes(*now.cgroup.left), now.cgroup.reason, format_bytes(options_.cgroup_left));
  }
  if (options_.budget && now.charge() + bytes > *options_.budget) {
    return fmt::format("the next context needs {}; the process holds {} of the budget of {} (--memory)", next,
                       format_bytes(now.charge()), format_bytes(*options_.budget));
  }
  return std::nullopt;
}

std::optional<std::string> MemoryGates::after(const MemoryState& now) const {
  if (now.available && *now.available < options_.available) {
    return fmt::format("MemAvailable fell to {}, below the gate of {} (--stop-available)", format_bytes(*now.available),
                       format_bytes(options_.available));
  }
  if (auto swapped = growth(baseline_.swap_used, now.swap_used);
      swapped && *swapped > static_cast<int64_t>(options_.swap)) {
    return fmt::format("the system swapped {} out, more than the gate of {} (--stop-swap)",
                       format_bytes(static_cast<uint64_t>(*swapped)), format_bytes(options_.swap));
  }
  if (now.cgroup.left && *now.cgroup.left < options_.cgroup_left) {
    return fmt::format("{} is left until the limit ({}), less than {}", format_bytes(*now.cgroup.left),
                       now.cgroup.reason, format_bytes(options_.cgroup_left));
  }
  if (options_.budget && now.charge() > *options_.budget) {
    return fmt::format("the process holds {}, more than the budget of {} (--memory)", format_bytes(now.charge()),
                       format_bytes(*options_.budget));
  }
  return std::nullopt;
}

MemoryGates::Room MemoryGates::room() const {
  Room room{std::numeric_limits<uint64_t>::max(), "no limit is known"};
  auto tighten = [&](uint64_t bytes, std::string gate) {
    if (bytes < room.bytes) room = {bytes, std::move(gate)};
  };
  if (baseline_.available) {
    tighten(minus(*baseline_.available, options_.available),
            fmt::format("MemAvailable of {} less the gate of {}", format_bytes(*baseline_.available),
                        format_bytes(options_.available)));
  }
  if (baseline_.cgroup.left) {
    tighten(minus(*baseline_.cgroup.left, options_.cgroup_left),
            fmt::format("{}; {} stay free", baseline_.cgroup.reason, format_bytes(options_.cgroup_left)));
  }
  if (options_.budget) {
    tighten(minus(*options_.budget, baseline_.charge()),
            fmt::format("the budget of {} less {} that the process held before", format_bytes(*options_.budget),
                        format_bytes(baseline_.charge())));
  }
  return room;
}

}  // namespace ridge
