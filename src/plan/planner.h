// Decides what stays in memory and what streams, under a budget that is never exceeded.
//
// The planner knows programs and rates, not models: it asks for the program at a slot size, for the account of
// everything that is not weights at a batch size, and for what a placement would allocate. Slot, batch and pins are
// settled together. Pinned blocks are spread evenly over the order of the pass, so that reads hide behind computing
// (docs/streaming.md).
//
//   Plan plan = RIDGE_TRY(make_plan(input));
//   plan.placement.pinned[b]; plan.account.table(); plan.reasons
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "memory/streaming_source.h"
#include "plan/account.h"
#include "program/program.h"

namespace ridge {

// What the plan expects of the machine, bytes per second. Measured by `ridge probe` where it has run.
struct Rates {
  double storage = 1.0e9;
  double memory = 10.0e9;
  double rearrange = 8.0e9;                                // rows to panels, all compute threads
  double block_overhead_s = 80e-6;                         // of one streamed block: submit, wake, the device's latency
  bool storage_measured = false, memory_measured = false;  // by ridge probe, else assumed
  bool measured() const { return storage_measured && memory_measured; }
};

struct PlanInput {
  std::optional<uint64_t> budget;          // nothing: everything may be pinned
  std::string budget_reason = "--memory";  // where the budget comes from, for the refusal
  std::optional<uint64_t> most_pinned;     // pin at most this much even where more would fit
  std::function<Program(uint64_t slot_bytes)> program;
  std::function<Account(const Program& program, uint32_t batch)> fixed;  // all that is not weights
  std::vector<uint32_t> batches;   // candidates for tokens per prompt pass, descending, not empty
  std::vector<TensorId> gathered;  // tensors read by rows (the embedding)
  Rates rates;
};

// T* of a pass: no schedule can be faster (docs/memory.md).
struct Bound {
  double storage_s = 0, memory_s = 0, rearrange_s = 0;
  double seconds() const;
};

struct Plan {
  Program program;
  Placement placement;
  uint32_t batch = 1;
  bool keep_gathered = false;
  Account account;
  Bound bound;  // of a decode pass
  std::vector<std::string> reasons;
};

// does_not_fit with the table of what needs what and the smallest budget that would work.
Result<Plan> make_plan(const PlanInput& input);

// The account of the least that works: one token at a time, and slots and pins chosen for nothing but size. Its total
// is the smallest budget.
Account smallest_account(const PlanInput& input);

// T* of one pass of this program under this placement.
Bound bound_of(const Program& program, const Placement& placement, const Rates& rates);

// Evenly spaced pins of at most `capacity` bytes (as panels), by the order of visits.
std::vector<uint8_t> spread_pins(const Program& program, uint64_t capacity);

}  // namespace ridge
