#include "plan/plan_reasons.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "plan/expert_plan.h"
#include "plan/fit.h"

namespace ridge {
namespace {

// Bytes of experts that a decode pass demands and that are not pinned, as expected.
uint64_t demanded_experts(const Plan& plan) {
  double sum = 0;
  for (const Visit& v : plan.program.visits) {
    const Block& block = plan.program.blocks[v.block];
    if (block.on_demand && !plan.placement.pinned[v.block]) sum += v.chance * static_cast<double>(block.storage_bytes);
  }
  return static_cast<uint64_t>(sum);
}

std::string ms(double seconds) { return fmt::format("{:.1f} ms", seconds * 1e3); }

std::string pins_sentence(const Plan& plan, PinRule rule) {
  const Program& program = plan.program;
  const size_t pinned = static_cast<size_t>(std::count(plan.placement.pinned.begin(), plan.placement.pinned.end(), 1));
  const std::string bytes = format_bytes(plan.placement.pinned_bytes(program));
  const std::string blocks = counted(program.blocks.size(), "block is", "blocks are");
  if (rule == PinRule::leading) {
    return fmt::format("{} of {} pinned ({}): the first of the pass (--pins leading)", pinned, blocks, bytes);
  }
  if (rule == PinRule::none) return fmt::format("0 of {} pinned (--pins none)", blocks);
  if (rule == PinRule::lru) {
    return fmt::format(
        "0 of {} pinned, each is read in its turn: all that recency finds in a cyclic order (--pins lru)", blocks);
  }
  std::string quality = plan.pins_exact ? "no other choice saves more time"
                        : plan.pin_gap < 5e-5
                            ? "no other choice saves 0.01 % more time"
                            : fmt::format("no other choice saves {:.2f} % more time", plan.pin_gap * 100);
  return fmt::format(
      "{} of {} pinned ({}), chosen by seconds saved per byte ({}) and spread over the pass in "
      "time, so that reads hide behind computing",
      pinned, blocks, bytes, quality);
}

std::string hiding_sentence(const Plan& plan) {
  const PassForecast& f = plan.decode;
  if (f.seconds <= f.compute_s * 1.01) {
    return fmt::format("reading ({}) hides behind computing ({}) entirely: more memory would not help decoding",
                       ms(f.read_s), ms(f.compute_s));
  }
  if (f.seconds <= f.bound.memory_s) {
    return fmt::format(
        "a decode pass takes {}: memory is busy for so long with weights that are read in and computed on",
        ms(f.seconds));
  }
  return fmt::format("a decode pass takes {}: computing {}, of reading {} the rest is waited for", ms(f.seconds),
                     ms(f.compute_s), ms(f.read_s));
}

std::string_view makes_room(ExpertPolicy policy) {
  switch (policy) {
    case ExpertPolicy::lru:
      return "dropping the one used longest ago (lru)";
    case ExpertPolicy::decayed_lfu:
      return "dropping the one used least, older uses counting less (decayed lfu)";
    case ExpertPolicy::importance:
      break;
  }
  return "dropping what is least likely to be used, if that is less likely than what comes (importance)";
}

void explain_neurons(const Plan& plan, const ExpertDemand& demand, std::vector<std::string>& reasons) {
  const Placement& p = plan.placement;
  const uint64_t room = slot_room(plan.program, p.pinned, SlotKind::on_demand);
  reasons.push_back(
      fmt::format("up and down weights lie in {}, of which only those are read that have a neuron with a gate above 0: "
                  "{} of a layer per token, if it is as was measured or assumed; {} of {}, of which {} hold what "
                  "one pass uses of a layer",
                  counted(demand.blocks, "bundle of neurons", "bundles of neurons"), demand.per_token,
                  counted(p.expert_slots, "slot"), format_bytes(room), demand.at_once));
  if (p.expert_cache == 0) return;
  reasons.push_back(fmt::format("{} bundles stay where they are, {}", uint64_t{p.expert_cache} * demand.layers,
                                makes_room(p.expert_policy)));
}

void explain_experts(const Plan& plan, std::vector<std::string>& reasons) {
  const uint64_t room = slot_room(plan.program, plan.placement.pinned, SlotKind::on_demand);
  if (room == 0) return;
  const Placement& p = plan.placement;
  const ExpertDemand demand = expert_demand(plan.program);
  size_t pinned = 0;
  for (BlockId b = 0; b < plan.program.blocks.size(); ++b) {
    pinned += plan.program.blocks[b].on_demand && p.pinned[b] ? 1 : 0;
  }
  if (demand.at_once > 0) return explain_neurons(plan, demand, reasons);
  reasons.push_back(
      fmt::format("{} of {} pinned, after what every pass needs; the others come when a router chooses them, "
                  "through {} of {}: {} per token if all are chosen alike",
                  pinned, counted(demand.blocks, "expert block is", "expert blocks are"),
                  counted(p.expert_slots, "slot"), format_bytes(room), format_bytes(demanded_experts(plan))));
  if (p.expert_cache == 0) {
    reasons.push_back(
        plan.expert_room < demand.per_token
            ? fmt::format("guard: experts pass by (bypass) instead of being cached: {} for each of {} is all "
                          "that fits, a token demands {} of a layer, and a smaller cache would be emptied before it is "
                          "used again",
                          counted(plan.expert_room, "block"), counted(demand.layers, "layer"), demand.per_token)
            : "experts are not cached: pinned ones, which need no rearranging, save more than a cache of the same "
              "size");
    return;
  }
  reasons.push_back(
      fmt::format("each of {} keeps {} of its own, and makes room by {}; {:.0f} % of "
                  "visits to unpinned experts should need no read. What one pass wants beyond that passes "
                  "by and evicts nothing that the same pass uses",
                  counted(demand.layers, "layer"), counted(p.expert_cache, "expert block"), makes_room(p.expert_policy),
                  plan.expert_hits * 100));
}

void explain_streams(const Plan& plan, std::vector<std::string>& reasons) {
  const uint64_t in_order = plan.placement.streamed_bytes(plan.program) - demanded_experts(plan);
  if (in_order > 0 && plan.placement.slots > 1) {
    reasons.push_back(
        fmt::format("{} stream per pass through {} slots of {}, which keep the device busy while one is computed on; "
                    "after the last block the first is read",
                    format_bytes(in_order), plan.placement.slots == 2 ? "two" : std::to_string(plan.placement.slots),
                    format_bytes(plan.placement.slot_bytes)));
  }
}

// What memory pressure can take from the pins, and what room for that costs.
void explain_live(const Plan& plan, const PlanInput& input, std::vector<std::string>& reasons) {
  if (input.live == LiveRoom::none) return;
  const Placement& p = plan.placement;
  uint64_t bytes = 0;
  size_t may_go = 0, pinned = 0;
  for (BlockId b = 0; b < plan.program.blocks.size(); ++b) {
    pinned += p.pinned[b];
    if (!p.pinned[b] || !p.may_go(b)) continue;
    bytes += plan.program.blocks[b].memory_bytes;
    ++may_go;
  }
  if (may_go == 0) {
    reasons.push_back(
        "live budget: no pins are given back under memory pressure: nothing streams, so there are no slots for them "
        "to stream through; --floor SIZE reserves some");
    return;
  }
  bool in_order = false;  // whether the slots have another use
  for (BlockId b = 0; b < plan.program.blocks.size(); ++b) {
    in_order = in_order || (!p.pinned[b] && !plan.program.blocks[b].on_demand);
  }
  const std::string cost = in_order ? "the stream slots serve them at no cost"
                                    : fmt::format("{} slots of {} are reserved for them to stream through", p.slots,
                                                  format_bytes(p.slot_bytes));
  reasons.push_back(fmt::format("live budget: memory pressure can take {} of {} pinned blocks ({}) in steps; {}",
                                may_go, pinned, format_bytes(bytes), cost));
}

}  // namespace

std::vector<std::string> reasons_of(const Plan& plan, const PlanInput& input) {
  std::vector<std::string> reasons;
  if (!plan.placement.streams()) {
    reasons.push_back(
        fmt::format("resident: all {} of weights fit beside the rest", format_bytes(plan.program.memory_bytes())));
  } else {
    reasons.push_back(pins_sentence(plan, input.pins));
    explain_streams(plan, reasons);
    explain_experts(plan, reasons);
    reasons.push_back(hiding_sentence(plan));
  }
  explain_live(plan, input, reasons);
  reasons.push_back(fmt::format("prompts are read {} per pass", counted(plan.batch, "token")));
  reasons.push_back(fmt::format("bound of a decode pass: {} ({})", ms(plan.bound.seconds()),
                                !input.rates.measured()          ? "assumed rates; run `ridge probe`"
                                : input.rates.contention.empty() ? "rates measured by ridge probe"
                                                                 : contention_sentence(input.rates)));
  return reasons;
}

}  // namespace ridge
