#include "plan/fit.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "memory/io_engine.h"
#include "plan/elastic_room.h"
#include "plan/expert_plan.h"

namespace ridge {
namespace {

// `fixed` and what a source takes.
Account with_source(Account fixed, const Placement& placement, const SourceMemory& m) {
  fixed.add("pinned weights", m.pins);
  fixed.add(fmt::format("{} stream slots", placement.slots), m.slots);
  fixed.add(fmt::format("{} for experts", counted(placement.expert_slots, "slot")), m.experts);
  fixed.add("embedding rows", m.gathered);
  fixed.add("I/O buffers", m.io);
  return fixed;
}

// A plan on the way: settle() sizes slots and account to the pins, and says whether that is within the budget.
// `known`, where given, keeps what other plans of the program need again.
class Fitting {
 public:
  Fitting(const PlanInput& input, const Program& program, Plan& plan, bool busy, ElasticRoom elastic,
          SettledPlacements* known = nullptr)
      : input_(input),
        program_(program),
        plan_(plan),
        busy_(busy),
        known_(known),
        fixed_(input.fixed(program, plan.batch)),
        elastic_(std::move(elastic)) {}

  bool settle(bool keep_gathered) {
    plan_.keep_gathered = keep_gathered;
    size_slots();
    plan_.account = with_weights(fixed_, program_, plan_.placement, input_, keep_gathered);
    return within_budget();
  }
  // The same with all blocks pinned or none. That depends on neither budget nor batch: `known` keeps it.
  bool settle_all(bool pinned, bool keep_gathered, std::optional<SettledPlacement> SettledPlacements::*which) {
    SettledPlacements here;
    std::optional<SettledPlacement>& known = (known_ != nullptr ? known_ : &here)->*which;
    if (!known) {
      plan_.placement = {};
      plan_.placement.pinned.assign(program_.blocks.size(), pinned);
      plan_.placement.expert_slots = fewest_expert_slots(program_);
      size_slots();
      known = {plan_.placement, StreamingSource::memory(program_, plan_.placement, input_.gathered, keep_gathered)};
    }
    plan_.keep_gathered = keep_gathered;
    plan_.placement = known->placement;
    plan_.account = with_source(fixed_, plan_.placement, known->memory);
    return within_budget();
  }
  void use_two_slots() {
    busy_ = false;
    known_ = nullptr;
  }
  void reserve_nothing() {
    elastic_ = ElasticRoom(program_, input_.gathered, LiveRoom::none);
    known_ = nullptr;
  }
  uint64_t left() const { return input_.budget ? *input_.budget - plan_.account.total() : UINT64_MAX; }
  uint64_t over() const { return plan_.account.total() - *input_.budget; }

  bool fits_resident() {
    if (input_.most_pinned && program_.memory_bytes() > *input_.most_pinned) return false;
    return settle_all(true, true, &SettledPlacements::all_kept) || settle_all(true, false, &SettledPlacements::all);
  }

  bool fits_streamed() {
    if (!settle_all(false, false, &SettledPlacements::none)) return false;
    provide_for_experts();
    uint64_t capacity = left();
    if (input_.most_pinned) capacity = std::min(capacity, *input_.most_pinned);
    // Pins and slot depend on each other (the slot holds the largest block that is not pinned), so the capacity is
    // lowered until the sum fits.
    for (;;) {
      plan_.placement.pinned = pins(capacity);
      if (settle(false)) return true;
      capacity = capacity > over() ? capacity - over() : 0;
    }
  }

 private:
  void size_slots() {
    plan_.placement.slot_bytes = slot_room(program_, plan_.placement.pinned, SlotKind::in_order);
    elastic_.grant(plan_.placement);
    plan_.placement.slots = input_.pins == PinRule::lru ? 1 : busy_ ? busy_slots(plan_.placement.slot_bytes) : 2;
  }
  bool within_budget() const { return !input_.budget || plan_.account.total() <= *input_.budget; }

  std::vector<uint8_t> pins(uint64_t capacity) const {
    switch (input_.pins) {
      case PinRule::planned:
        return spread_pins(program_, capacity);
      case PinRule::leading:
        return leading_pins(program_, capacity);
      case PinRule::none:
      case PinRule::lru:
        break;
    }
    return std::vector<uint8_t>(program_.blocks.size(), 0);
  }

  // Slots of experts beyond the two that are needed. A cache is worth its memory only where all else is pinned.
  void provide_for_experts() {
    const uint64_t room = slot_room(program_, plan_.placement.pinned, SlotKind::on_demand);
    if (room == 0) return;
    ExpertDemand demand = expert_demand(program_);
    // What is asked for, else one cache for bundles, whose pins would be chosen blindly (for experts it was not
    // measured to be better), else by the size of the cache.
    std::optional<ExpertPolicy> policy = input_.expert_policy;
    if (!policy && demand.at_once > 0) policy = ExpertPolicy::importance;
    demand.one_cache = policy == ExpertPolicy::importance;
    uint64_t capacity = left();
    if (input_.most_pinned) capacity = std::min(capacity, *input_.most_pinned);
    const uint64_t in_order = program_.memory_bytes() - demand.memory_bytes;
    ExpertSplit split;
    if (capacity > in_order) {
      split = split_for_experts(demand, input_.rates, room, capacity - in_order);
    } else {
      split.passing = passing_slots(demand, 0, room, capacity);
    }
    if (policy) split.policy = *policy;
    apply(split, demand);
    // The account counts in steps of 2 MiB; an estimate that was too large by one is corrected.
    const uint32_t least = demand.one_cache ? 1 : demand.per_token;
    while (!settle(false) && split.cache > least) {
      --split.cache;
      apply(split, demand);
    }
    if (settle(false)) return;
    apply({.passing = fewest_expert_slots(program_), .room = split.room}, demand);
    (void)settle(false);
  }

  void apply(const ExpertSplit& split, const ExpertDemand& demand) {
    plan_.placement.expert_cache = split.cache;
    plan_.placement.expert_slots = split.passing + split.cache * demand.layers;
    plan_.placement.expert_policy = split.cache > 0 ? split.policy : ExpertPolicy::lru;
    // One cache for all layers has no share of a layer to be used beside what passes by.
    if (demand.at_once > 0 && plan_.placement.expert_policy == ExpertPolicy::importance) {
      plan_.placement.expert_slots = demand.at_once + split.cache * demand.layers;
    }
    plan_.expert_hits = split.hits;
    plan_.expert_room = split.room;
  }

  const PlanInput& input_;
  const Program& program_;
  Plan& plan_;
  bool busy_;
  SettledPlacements* known_;
  Account fixed_;
  ElasticRoom elastic_;
};

}  // namespace

uint64_t slot_room(const Program& program, const Block& block) {
  constexpr uint64_t kSlack = 64;
  uint64_t room = kSlack;
  for (const JoinedPieces& read : joined_pieces(program, block)) room += read_span(read.offset, read.bytes);
  return round_up(room, kIoAlign);
}

uint64_t slot_room(const Program& program, const std::vector<uint8_t>& pinned, SlotKind kind) {
  uint64_t most = 0;
  for (BlockId b = 0; b < program.blocks.size(); ++b) {
    if (pinned[b] || program.blocks[b].on_demand != (kind == SlotKind::on_demand)) continue;
    most = std::max(most, slot_room(program, program.blocks[b]));
  }
  return most;
}

Account with_weights(Account fixed, const Program& program, const Placement& placement, const PlanInput& input,
                     bool keep) {
  return with_source(std::move(fixed), placement, StreamingSource::memory(program, placement, input.gathered, keep));
}

uint32_t busy_slots(uint64_t room) {
  // What saturates single drives (docs/streaming.md); more requests are not started at a time anyway (io_engine.h).
  constexpr uint64_t kInFlight = 8 * kMiB;
  constexpr uint64_t kMost = 33;
  if (room == 0) return 2;
  return static_cast<uint32_t>(std::clamp<uint64_t>(1 + (kInFlight + room - 1) / room, 2, kMost));
}

std::optional<Plan> fit(const PlanInput& input, Candidate& candidate, uint32_t batch) {
  Plan plan;
  plan.batch = batch;
  Fitting fitting(input, candidate.program, plan, true, candidate.elastic, &candidate.known);
  if (fitting.fits_resident() || fitting.fits_streamed()) return plan;
  fitting.use_two_slots();
  if (fitting.fits_streamed()) return plan;
  // A model that is smaller than slots for it.
  fitting.reserve_nothing();
  if (input.live == LiveRoom::always && fitting.fits_resident()) return plan;
  return std::nullopt;
}

void improve_pins(const PlanInput& input, const PassModels& models, Plan& plan) {
  // Choosing costs milliseconds; the first capacity nearly always fits, since what changes is only which blocks.
  constexpr int kTries = 4;
  uint64_t in_order = 0, on_demand = 0;
  for (BlockId b = 0; b < plan.program.blocks.size(); ++b) {
    if (!plan.placement.pinned[b]) continue;
    (plan.program.blocks[b].on_demand ? on_demand : in_order) += plan.program.blocks[b].memory_bytes;
  }
  Plan trial;
  trial.placement = plan.placement;
  trial.batch = plan.batch;
  ElasticRoom elastic(plan.program, input.gathered, input.live);
  Fitting fitting(input, plan.program, trial, plan.placement.slots > 2, std::move(elastic));
  if (!fitting.settle(plan.keep_gathered)) return;
  uint64_t capacity = in_order + fitting.left();
  if (input.most_pinned) capacity = std::min(capacity, *input.most_pinned - std::min(*input.most_pinned, on_demand));
  const double before = models.seconds(plan.placement.pinned, plan.placement.slots);
  for (int t = 0; t < kTries; ++t) {
    const PinChoice choice = choose_pins(plan.program, models, capacity);
    for (BlockId b = 0; b < plan.program.blocks.size(); ++b) {
      if (!plan.program.blocks[b].on_demand) trial.placement.pinned[b] = choice.pinned[b];
    }
    if (!fitting.settle(plan.keep_gathered)) {
      if (capacity <= fitting.over()) return;
      capacity -= fitting.over();
      continue;
    }
    plan.pin_gap = choice.gap;
    plan.pins_exact = choice.exact;
    if (models.seconds(trial.placement.pinned, trial.placement.slots) > before) return;
    plan.placement = trial.placement;
    plan.account = trial.account;
    return;
  }
}

}  // namespace ridge
