// Decides what stays in memory and what streams, under a budget that is never exceeded.
//
// The planner knows programs and rates, not models: it asks for the program at a slot size, for the account of
// everything that is not weights at a batch size, and for what a placement would allocate. Slot, batch and pins are
// settled together, by the predicted time of a decoded token and of a prompt token (docs/planning.md).
//
//   Plan plan = RIDGE_TRY(make_plan(input));
//   plan.placement.pinned[b]; plan.account.table(); plan.decode.seconds; plan.reasons
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "memory/streaming_source.h"
#include "plan/account.h"
#include "plan/elastic_room.h"
#include "plan/pass_model.h"
#include "plan/placement.h"
#include "program/program.h"

namespace ridge {

struct PlanInput {
  std::optional<uint64_t> budget;                       // nothing: everything may be pinned
  std::string budget_reason = "--memory";               // where the budget comes from, for the refusal
  std::string needs_less = "give a smaller --context";  // what else helps where the budget does not suffice
  std::optional<uint64_t> most_pinned;                  // pin at most this much even where more would fit
  PinRule pins = PinRule::planned;                      // where not everything fits
  std::optional<ExpertPolicy> expert_policy;            // of a cache of experts; none: by its size
  std::function<Program(uint64_t slot_bytes)> program;
  std::function<Account(const Program& program, uint32_t batch)> fixed;  // all that is not weights
  std::vector<uint32_t> batches;   // candidates for tokens per prompt pass, descending, not empty
  std::vector<TensorId> gathered;  // tensors read by rows (the embedding)
  // The program of a prompt pass, for what it costs; without it a prompt pass costs as many decode passes as it has
  // tokens, except that weights are read once.
  std::function<Program(uint64_t slot_bytes, uint32_t tokens)> prompt;
  // Slots that let pins be given back while running: only those that are there anyway, or also for this alone.
  LiveRoom live = LiveRoom::none;
  uint64_t least_slot = 0;  // smaller slots only where no larger one fits
  Rates rates;
};

// What a pass is expected to take.
struct PassForecast {
  uint32_t tokens = 1;
  double seconds = 0;    // of the schedule that the source follows
  double compute_s = 0;  // of these, computing; the rest waits for storage
  double read_s = 0;     // time that the device is busy
  Bound bound;
};

struct Plan {
  Program program;
  Placement placement;
  uint32_t batch = 1;
  bool keep_gathered = false;
  Account account;
  Bound bound;               // of a decode pass
  double expert_hits = 0;    // expected share of visits to unpinned experts that need no read
  uint32_t expert_room = 0;  // blocks that a cache of each layer could have held
  double pin_gap = 0;        // share of the time saved by pins that a better choice could add at most (knapsack.h)
  bool pins_exact = true;    // that choice was solved to the end
  PassForecast decode, prompt;
  std::vector<std::string> reasons;
};

// does_not_fit with the table of what needs what and the smallest budget that would work.
Result<Plan> make_plan(const PlanInput& input);

// The account of the least that works: one token at a time, and slots and pins chosen for nothing but size. Its total
// is the smallest budget.
Account smallest_account(const PlanInput& input);

// That the model does not fit into `budget` bytes, which `reason` set ("--memory", or a limit of the machine): the
// table of the least that it needs, the budget to give, and what else helps.
Error refuse_budget(uint64_t budget, std::string_view reason, const Account& least, std::string_view needs_less);

// T* of one pass of this program under this placement.
Bound bound_of(const Program& program, const Placement& placement, const Rates& rates);

}  // namespace ridge
