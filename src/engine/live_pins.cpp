#include "engine/live_pins.h"

#include <fmt/format.h>

#include "base/log.h"
#include "base/units.h"

namespace ridge {

LivePins::LivePins(const LiveOptions& options, StreamingSource& source, PressureReader reader)
    : budget_(options), source_(source), reader_(std::move(reader)), always_(reader_ != nullptr) {
  if (!always_) reader_ = [] { return memory_pressure(); };
}

Result<void> LivePins::before_pass() {
  constexpr std::chrono::milliseconds kBetweenLooks{250};
  const auto now = std::chrono::steady_clock::now();
  if (!always_ && now - looked_ < kBetweenLooks) return {};
  looked_ = now;
  const LiveStep step = budget_.look(reader_(), source_.given_back(), now);
  if (step.give > 0) {
    const uint64_t freed = source_.give_back(step.give);
    if (freed == 0) return {};
    note(fmt::format("{}: {} of weights are given back and stream from now on", step.why, format_bytes(freed)));
  }
  if (step.take > 0) {
    const uint64_t taken = RIDGE_TRY(source_.take_back(step.take));
    if (taken > 0) note(fmt::format("{}: {} of weights are in memory again", step.why, format_bytes(taken)));
  }
  return {};
}

}  // namespace ridge
