#include "plan/planner.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "plan/expert_plan.h"
#include "plan/fit.h"
#include "plan/plan_reasons.h"

namespace ridge {
namespace {

// Slots below this make so many small reads that the device's latency, not its rate, sets the pace.
constexpr uint64_t kSmallestSlot = 64 * kKiB;

// Block sizes worth trying, from whole parts down.
std::vector<uint64_t> slot_candidates(const Program& whole, LiveRoom live) {
  uint64_t largest = whole.largest_block_storage();
  if (live == LiveRoom::always) largest = std::min(largest, kMostLiveBlock);
  std::vector<uint64_t> out;
  for (uint64_t slot = largest; slot >= kSmallestSlot; slot = slot * 2 / 3) out.push_back(slot);
  if (out.empty()) out.push_back(std::max<uint64_t>(largest, 1));
  return out;
}

// Seconds of a decoded token and of one prompt token, for comparing candidates.
double predicted(const Plan& plan, const PassModel& decode, const PassModel& prompt) {
  const PassModels models{
      .decode = &decode, .prompt = &prompt, .prompt_tokens = plan.batch, .expert_hits = plan.expert_hits};
  return models.seconds(plan.placement.pinned, plan.placement.slots);
}

PassForecast forecast(const PassModel& model, const Plan& plan, uint32_t tokens, double expert_hits) {
  const PassPlacement p{.pinned = plan.placement.pinned, .slots = plan.placement.slots, .expert_hits = expert_hits};
  return {.tokens = tokens,
          .seconds = std::max(model.seconds(p), model.bound(p).seconds()),
          .compute_s = model.compute_seconds(p),
          .read_s = model.read_seconds(p),
          .bound = model.bound(p)};
}

// The prompt pass as the model counts it, where the blocks are those of the plan.
PassModel prompt_model(const PlanInput& input, const Program& program, uint64_t slot, uint32_t batch) {
  if (input.prompt) {
    const Program counted = input.prompt(slot, batch);
    if (counted.blocks.size() == program.blocks.size()) return PassModel(counted, input.rates, batch, batch);
  }
  return PassModel(program, input.rates, batch);
}

// A prompt pass wants more experts of a layer than its cache holds; the guard keeps what is there.
double prompt_hits(const Plan& plan) {
  uint32_t streamed = 0;
  for (BlockId b = 0; b < plan.program.blocks.size(); ++b) {
    streamed += plan.program.blocks[b].on_demand && !plan.placement.pinned[b] ? 1 : 0;
  }
  const double held =
      static_cast<double>(plan.placement.expert_cache) * static_cast<double>(plan.program.expert_groups.size());
  return streamed > 0 ? std::min(1.0, held / streamed) : 0;
}

struct Best {
  std::optional<Plan> plan;  // its program included
  uint64_t slot = 0;
  double seconds = 0;
};

// The best batch and number of slots for blocks of this size.
void consider_slot(const PlanInput& input, uint64_t slot, Best& best) {
  Program program = input.program(slot);
  const PassModel decode(program, input.rates, 1);
  bool better = false;
  for (uint32_t batch : input.batches) {
    std::optional<Plan> plan = fit(input, program, batch);
    if (!plan) continue;
    const double seconds = predicted(*plan, decode, PassModel(program, input.rates, batch));
    if (best.plan && seconds >= best.seconds) continue;
    best = {std::move(plan), slot, seconds};
    better = true;
  }
  // Thousands of blocks are not copied for each batch.
  if (better) best.plan->program = std::move(program);
}

}  // namespace

Bound bound_of(const Program& program, const Placement& placement, const Rates& rates) {
  return PassModel(program, rates, 1).bound({.pinned = placement.pinned, .slots = placement.slots});
}

Error refuse_budget(uint64_t budget, std::string_view reason, const Account& least, std::string_view needs_less) {
  return does_not_fit(fmt::format("the model does not fit into {} ({}): the least it needs is\n{}{} {} or more, or {}",
                                  format_bytes(budget), reason, least.table(),
                                  reason == "--memory" ? "give --memory" : "raise that limit to",
                                  budget_text(named_budget(least.total())), needs_less));
}

Account smallest_account(const PlanInput& input) {
  std::optional<Account> least;
  auto consider = [&](Account account) {
    if (!least || account.total() < least->total()) least = std::move(account);
  };
  for (uint64_t slot : slot_candidates(input.program(0), LiveRoom::none)) {
    Program program = input.program(slot);
    Placement none{.pinned = std::vector<uint8_t>(program.blocks.size(), 0)};
    none.expert_slots = fewest_expert_slots(program);
    none.slot_bytes = slot_room(program, none.pinned, SlotKind::in_order);
    consider(with_weights(input.fixed(program, input.batches.back()), program, none, input, false));
    Placement all{.pinned = std::vector<uint8_t>(program.blocks.size(), 1)};
    consider(with_weights(input.fixed(program, input.batches.back()), program, all, input, false));
  }
  return *least;
}

Result<Plan> make_plan(const PlanInput& input) {
  Best best;
  // Predicted time has one valley over the size of blocks; what lies beyond it is not looked at.
  constexpr int kBeyond = 3;
  int worse = 0;
  for (uint64_t slot : slot_candidates(input.program(0), input.live)) {
    const double before = best.seconds;
    consider_slot(input, slot, best);
    worse = best.plan && best.seconds == before ? worse + 1 : 0;
    if (worse == kBeyond) break;
    // A resident plan with the largest batch cannot be beaten by smaller slots.
    if (best.plan && !best.plan->placement.streams() && best.plan->batch == input.batches.front()) break;
  }
  if (!best.plan) return refuse_budget(*input.budget, input.budget_reason, smallest_account(input), input.needs_less);
  Plan& plan = *best.plan;
  const PassModel decode(plan.program, input.rates, 1);
  const PassModel prompt = prompt_model(input, plan.program, best.slot, plan.batch);
  if (plan.placement.streams() && input.pins == PinRule::planned) {
    improve_pins(input,
                 {.decode = &decode, .prompt = &prompt, .prompt_tokens = plan.batch, .expert_hits = plan.expert_hits},
                 plan);
  }
  plan.decode = forecast(decode, plan, 1, plan.expert_hits);
  plan.prompt = forecast(prompt, plan, plan.batch, prompt_hits(plan));
  plan.bound = plan.decode.bound;
  plan.reasons = reasons_of(plan, input);
  return std::move(plan);
}

}  // namespace ridge
