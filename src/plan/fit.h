// What of a program fits beside everything else: slots, slots for experts, and pins, within the budget.
//
//   std::optional<Plan> plan = fit(input, candidates[i], batch);  // nothing: it does not fit
//   improve_pins(input, models, *plan);                           // the same memory, better used
#pragma once

#include <optional>

#include "plan/candidates.h"
#include "plan/planner.h"

namespace ridge {

// Room that the streamed blocks of one kind need in a slot: the aligned range around each piece, and slack for wide
// loads at its end. 0 if there are none.
enum class SlotKind : uint8_t { in_order, on_demand };
uint64_t slot_room(const Program& program, const std::vector<uint8_t>& pinned, SlotKind kind);
uint64_t slot_room(const Program& program, const Block& block);

// `fixed` and what this placement's weights take.
Account with_weights(Account fixed, const Program& program, const Placement& placement, const PlanInput& input,
                     bool keep_gathered);

// How many slots of `room` bytes keep a device busy while one of them is computed on (docs/streaming.md): at least two.
uint32_t busy_slots(uint64_t room);

// The most that can be pinned so that everything together stays within the budget. The plan's program is left empty.
// As many slots as busy_slots() says; two where only those leave room.
std::optional<Plan> fit(const PlanInput& input, Candidate& candidate, uint32_t batch);

// Chooses pins of the plan (whose program is set) anew, by time; keeps what is there if that is no better. The budget
// holds.
void improve_pins(const PlanInput& input, const PassModels& models, Plan& plan);

}  // namespace ridge
