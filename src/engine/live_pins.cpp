#include "engine/live_pins.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "base/units.h"

namespace ridge {
namespace {

LiveOptions completed(LiveOptions options, const StreamingSource& source, const PressureReader& reader) {
  constexpr uint64_t kSteps = 8, kSmallestStep = 8 * kMiB;
  if (options.floor == 0) options.floor = default_floor(reader().available.value_or(0));
  const ElasticState state = source.elastic_state();
  if (options.step == 0) options.step = std::max(state.bytes / kSteps, kSmallestStep);
  options.step = std::max(options.step, state.largest_step);
  return options;
}

}  // namespace

LivePins::LivePins(LiveOptions options, StreamingSource& source, PressureReader reader)
    : budget_({}), source_(source), reader_(std::move(reader)), always_(reader_ != nullptr) {
  if (!always_) reader_ = [] { return memory_pressure(); };
  budget_ = LiveBudget(completed(options, source_, reader_));
}

void LivePins::before_pass() {
  constexpr std::chrono::milliseconds kBetweenLooks{250};
  const auto now = std::chrono::steady_clock::now();
  if (!always_ && now - looked_ < kBetweenLooks) return;
  looked_ = now;
  const LiveStep step = budget_.look(reader_(), source_.given_back(), now);
  if (step.give > 0) give(step);
  if (step.take > 0) take(step, now);
}

void LivePins::give(const LiveStep& step) {
  const auto begin = std::chrono::steady_clock::now();
  const uint64_t freed = source_.give_back(step.give);
  const ElasticState state = source_.elastic_state();
  if (freed == 0) {
    if (!said_empty_) {
      note(fmt::format("memory pressure ({}): there are no more pins to release, {} of {} blocks are released already",
                       step.why, state.gone, state.blocks));
    }
    said_empty_ = true;
    return;
  }
  stats_.releasing += std::chrono::steady_clock::now() - begin;
  ++stats_.releases;
  stats_.released_bytes += freed;
  stats_.most_away = std::max(stats_.most_away, source_.given_back());
  note(fmt::format("memory pressure ({}): released {} of pins; {} of {} blocks that may go stream now", step.why,
                   format_bytes(freed), state.gone, state.blocks));
}

void LivePins::take(const LiveStep& step, std::chrono::steady_clock::time_point now) {
  const auto begin = std::chrono::steady_clock::now();
  const Result<uint64_t> taken = source_.take_back(step.take);
  if (!taken.ok()) {
    ++stats_.failed_returns;
    budget_.failed(now);
    note(fmt::format("pins could not be read again, so they keep streaming: {}", taken.error().message));
    return;
  }
  if (taken.value() == 0) return;
  stats_.returning += std::chrono::steady_clock::now() - begin;
  ++stats_.returns;
  stats_.returned_bytes += taken.value();
  said_empty_ = false;
  const ElasticState state = source_.elastic_state();
  note(fmt::format("memory pressure is over: {} of pins are in memory again; {} of {} blocks that may go stream",
                   format_bytes(taken.value()), state.gone, state.blocks));
}

}  // namespace ridge
