// The 0/1 knapsack: which items to keep in a given number of bytes so that they save the most.
//
// Items that are alike are counted, not told apart, so that the blocks of a model (thousands, of a dozen sizes) are
// solved exactly by branch and bound. Where that takes too long, the best found is handed out with an upper bound that
// no choice can exceed: a proof of how far from the best it can be at most.
//
// Not for: where the kept blocks lie in the order of a pass (plan/placement.h).
//
//   std::vector<KnapsackItem> items = {{.value = 0.51, .bytes = 16 * kMiB}, …};     // seconds saved
//   KnapsackResult r = solve_knapsack(items, 300 * kMiB);
//   if (r.taken[0] != 0) …; r.value; r.gap() <= 0.01
//
// Thread-safe; the same result for the same input, whatever the machine.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ridge {

struct KnapsackItem {
  double value = 0;    // finite, any unit; what is worth nothing is not taken
  uint64_t bytes = 0;  // 0: costs nothing, taken if it is worth anything
};

struct KnapsackOptions {
  // Steps of the search after which the best so far is taken: 65,536 take about 5 ms.
  uint64_t most_steps = 65'536;
};

struct KnapsackResult {
  std::vector<uint8_t> taken;  // by item; of items that are alike the first ones
  double value = 0;
  uint64_t bytes = 0;
  double upper_bound = 0;  // no choice has a larger value; equal to `value` if exact
  bool exact = false;      // proven the best, up to rounding (1e-12 of the upper bound)
  // Share of the upper bound that the choice may miss at most.
  double gap() const { return upper_bound > 0 ? (upper_bound - value) / upper_bound : 0; }
};

// Bounds: Dantzig (1957), by filling in the order of value per byte and cutting the first item that does not fit.
KnapsackResult solve_knapsack(std::span<const KnapsackItem> items, uint64_t capacity,
                              const KnapsackOptions& options = {});

}  // namespace ridge
