// What memory that is left for experts is used for: pins, or a cache for each layer.
//
// A pinned expert is there as a panel and saves its share of visits; a cache slot holds whatever was used lately, in
// the file's layout. Neighbouring tokens choose alike, so a cache of a few experts hits far more often than pins of the
// same size; a large one gains little from its last slots, and its blocks must be rearranged at each use.
//
// Not for: running the cache (memory/expert_cache.h).
//
//   ExpertDemand demand = expert_demand(program);
//   ExpertSplit split = split_for_experts(demand, rates, slot_room, capacity);
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/pass_model.h"
#include "program/program.h"

namespace ridge {

struct ExpertDemand {
  uint32_t layers = 0;           // with experts
  uint32_t blocks = 0;           // on demand, of all layers
  uint32_t per_token = 0;        // blocks of a layer that a token demands, the most of all layers
  uint64_t memory_bytes = 0;     // of all blocks on demand, as panels
  double storage_per_token = 0;  // bytes that a token demands of all layers
  uint32_t at_once = 0;          // blocks of a layer that a pass may hold at the same time (neurons); 0: one
  bool one_cache = false;        // for all layers, which admits by importance: no cache is too small for it
};
// Slots for blocks on demand without which no pass can run.
uint32_t fewest_expert_slots(const Program& program);
ExpertDemand expert_demand(const Program& program);

struct ExpertSplit {
  uint64_t pin_bytes = 0;  // for panels of experts
  uint32_t cache = 0;      // slots of each layer, 0: none
  uint32_t passing = 2;    // slots for what is in no cache
  double hits = 0;         // expected share of visits to unpinned experts that find them in a slot
  ExpertPolicy policy = ExpertPolicy::lru;
  uint32_t room = 0;  // slots that each layer could have had at most
};

// The share of hits expected of a cache that holds `share` of a layer's experts. Measured by others with 128 experts
// and more: an eighth hits 39 to 67 %, a quarter 50 to 81 % (docs/planning.md); the square root is at the lower end.
double expected_hits(double share);

// Slots for what is in no cache: two at least, and so many that all reads of a token's experts are under way at once,
// as far as an eighth of the capacity goes.
uint32_t passing_slots(const ExpertDemand& demand, uint32_t cache, uint64_t slot_bytes, uint64_t capacity);

// The best of nine ways to divide `capacity` bytes, by expected time of a token. The guard: a cache smaller than what
// one token demands of a layer would be emptied before it is used again, so there is none (bypass).
ExpertSplit split_for_experts(const ExpertDemand& demand, const Rates& rates, uint64_t slot_bytes, uint64_t capacity);

}  // namespace ridge
