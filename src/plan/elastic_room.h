// Which pinned blocks may be given back while a model runs, and the room in stream slots that this takes.
//
// A block that goes must stream from then on, so the slots need room for it. Where something streams anyway the slots
// are there, and every pinned block that fits into them may go at no cost. Where nothing streams, slots for this alone
// are memory that holds no weights: they are reserved only if the live budget is asked for.
//
// Not for: when blocks go (live_budget.h), or in which order (memory/elastic_pins.h).
//
//   ElasticRoom room(program, gathered, LiveRoom::where_free);
//   room.grant(placement);                      // placement.pinned and slot_bytes are set; sets elastic, slot_bytes
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "program/program.h"

namespace ridge {

enum class LiveRoom : uint8_t { none, where_free, always };

// The largest block of a plan that reserves slots for nothing but the live budget: three slots of it, 12 MiB, keep a
// drive busy (busy_slots() in fit.h), and larger blocks gain nothing (docs/streaming.md).
inline constexpr uint64_t kMostLiveBlock = 4 * 1024 * 1024;

class ElasticRoom {
 public:
  ElasticRoom(const Program& program, std::span<const TensorId> gathered, LiveRoom live);
  // Of what is pinned, marks what may go. Never a block on demand, or one whose rows are gathered.
  void grant(Placement& placement) const;

 private:
  LiveRoom live_;
  std::vector<uint64_t> rooms_;  // by BlockId: bytes in a slot; 0: may never go
};

}  // namespace ridge
