// What the importance policy learns from one trace in order to be judged on another: how often blocks are used, which
// ones foretell which, what a decayed frequency is worth, and how much of the cache static pins should have.
//
// The first part of the trace gives frequencies and foretelling pairs, the rest what they are worth (least squares
// against the uses that came) and, by replay, the discount and the share of pins that hit most bytes at this capacity.
// Then frequencies and pairs are taken from the whole trace.
//
//   TrainedImportance learned = train_importance(other, {.capacity = 64 << 20});
//   CacheManager cache(learned.model, {.capacity = 64 << 20, .pinned = learned.pinned, .pinned_bytes =
//   learned.pinned_bytes});
//
// Deterministic.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "memory/cache_manager.h"
#include "sim/access_trace.h"

namespace ridge::sim {

// Objects of a trace as numbers from 0, in the order of their identifiers; others get the next ones when they are first
// met.
class BlockNumbers {
 public:
  explicit BlockNumbers(const AccessTrace* trace);
  uint32_t of(ObjectId object);
  uint64_t size() const { return numbers_.size(); }

 private:
  std::unordered_map<ObjectId, uint32_t> numbers_;
};

struct TrainedImportance {
  ImportanceModel model;
  std::vector<uint8_t> pinned;  // by number
  uint64_t pinned_bytes = 0;
  double pin_share = 0;  // of the capacity
};

struct TrainingOptions {
  uint64_t capacity = 0;               // in the unit of the sizes
  std::span<const double> worth = {};  // cost of a reload by object; empty: its size
  ReadAheadOptions read_ahead = {};  // of the cache that it is for: hits that are due to it count where pins are chosen
};

TrainedImportance train_importance(const AccessTrace& trace, const TrainingOptions& options);

}  // namespace ridge::sim
