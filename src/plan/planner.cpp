#include "plan/planner.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "plan/candidates.h"
#include "plan/expert_plan.h"
#include "plan/fit.h"
#include "plan/plan_reasons.h"

namespace ridge {
namespace {

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
  std::optional<Plan> plan;  // without its program
  size_t candidate = 0;
  double seconds = 0;
};

// The best batch and number of slots for blocks of this size.
void consider(const PlanInput& input, Candidates& candidates, size_t index, Best& best) {
  Candidate& candidate = candidates[index];
  for (size_t i = 0; i < input.batches.size(); ++i) {
    std::optional<Plan> plan = fit(input, candidate, input.batches[i]);
    if (!plan) continue;
    const double seconds = predicted(*plan, candidate.decode, candidate.prompts[i]);
    if (best.plan && seconds >= best.seconds) continue;
    best = {std::move(plan), index, seconds};
  }
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
  // For the least memory alone; room for the live budget is given up before anything is refused.
  PlanInput plain = input;
  plain.live = LiveRoom::none;
  Candidates candidates(plain);
  std::optional<Account> least;
  auto consider = [&](Account account) {
    if (!least || account.total() < least->total()) least = std::move(account);
  };
  for (size_t i = 0; i < candidates.size(); ++i) {
    const Program& program = candidates[i].program;
    Placement none{.pinned = std::vector<uint8_t>(program.blocks.size(), 0)};
    none.expert_slots = fewest_expert_slots(program);
    none.slot_bytes = slot_room(program, none.pinned, SlotKind::in_order);
    consider(with_weights(input.fixed(program, input.batches.back()), program, none, input, false));
    Placement all{.pinned = std::vector<uint8_t>(program.blocks.size(), 1)};
    consider(with_weights(input.fixed(program, input.batches.back()), program, all, input, false));
  }
  return *least;
}

Result<Plan> make_plan(const PlanInput& input, Candidates& candidates) {
  Best best;
  // Predicted time has one valley over the size of blocks; what lies beyond it is not looked at.
  constexpr int kBeyond = 3;
  int worse = 0;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (best.plan && candidates.slot(i) < input.least_slot) break;
    const double before = best.seconds;
    consider(input, candidates, i, best);
    worse = best.plan && best.seconds == before ? worse + 1 : 0;
    if (worse == kBeyond) break;
    // A resident plan with the largest batch cannot be beaten by smaller slots.
    if (best.plan && !best.plan->placement.streams() && best.plan->batch == input.batches.front()) break;
  }
  if (!best.plan) return refuse_budget(*input.budget, input.budget_reason, smallest_account(input), input.needs_less);
  const Candidate& chosen = candidates[best.candidate];
  Plan& plan = *best.plan;
  plan.program = chosen.program;
  const PassModel prompt = prompt_model(input, plan.program, chosen.slot, plan.batch);
  if (plan.placement.streams() && input.pins == PinRule::planned) {
    improve_pins(
        input,
        {.decode = &chosen.decode, .prompt = &prompt, .prompt_tokens = plan.batch, .expert_hits = plan.expert_hits},
        plan);
  }
  plan.decode = forecast(chosen.decode, plan, 1, plan.expert_hits);
  plan.prompt = forecast(prompt, plan, plan.batch, prompt_hits(plan));
  plan.bound = plan.decode.bound;
  plan.reasons = reasons_of(plan, input);
  return std::move(plan);
}

Result<Plan> make_plan(const PlanInput& input) {
  Candidates candidates(input);
  return make_plan(input, candidates);
}

}  // namespace ridge
