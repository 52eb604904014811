// What a benchmark's test moves and computes, by the model's own counts (program.h: Cost).
//
//   TestCost cost = prefill_cost(engine, {.tokens = 512, .depth = 1024});
//   double gb = cost.memory_bytes() / 1e9;
#pragma once

#include <cstdint>

#include "analyze/phase_cost.h"
#include "engine/engine.h"
#include "program/program.h"

namespace ridge {

struct TestCost {
  Cost cost;            // of all passes
  uint64_t passes = 0;  // walks through the weights
  // Of blocks that are not pinned. Experts by the chance that any of a pass's tokens chooses them; what their cache
  // holds is not taken off.
  double streamed_bytes = 0;
  double memory_bytes() const { return static_cast<double>(cost.memory_bytes + cost.kv_bytes); }
};

// In passes of the plan's batch; the head is read for the last token alone.
TestCost prefill_cost(const Engine& engine, const TestShape& shape);
// One pass per token. Summed over at most 16 evenly spaced positions.
TestCost decode_cost(const Engine& engine, const TestShape& shape);

}  // namespace ridge
