#include "plan/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "memory/io_engine.h"

namespace ridge {
namespace {

// Slots below this make so many small reads that the device's latency, not its rate, sets the pace.
constexpr uint64_t kSmallestSlot = 64 * kKiB;

// Block sizes worth trying, from whole parts down.
std::vector<uint64_t> slot_candidates(const Program& whole) {
  uint64_t largest = whole.largest_block_storage();
  std::vector<uint64_t> out;
  for (uint64_t slot = largest; slot >= kSmallestSlot; slot = slot * 2 / 3) out.push_back(slot);
  if (out.empty()) out.push_back(std::max<uint64_t>(largest, 1));
  return out;
}

// Room that the streamed blocks of one kind need in a slot: the aligned range around each piece, and slack for wide
// loads at its end. 0 if there are none.
enum class BlockKind : uint8_t { in_order, on_demand };
uint64_t slot_room(const Program& program, const std::vector<uint8_t>& pinned, BlockKind kind) {
  constexpr uint64_t kSlack = 64;
  uint64_t most = 0;
  for (BlockId b = 0; b < program.blocks.size(); ++b) {
    if (pinned[b] || program.blocks[b].on_demand != (kind == BlockKind::on_demand)) continue;
    uint64_t room = kSlack;
    for (const Piece& p : program.blocks[b].pieces) {
      const StoredTensor& t = program.tensors[p.tensor];
      room += read_span(t.stored_offset(p.row_begin), t.stored_bytes(p.row_begin, p.row_end));
    }
    most = std::max(most, room);
  }
  return round_up(most, kIoAlign);
}

Account with_weights(Account fixed, const Program& program, const Placement& placement, const PlanInput& input,
                     bool keep) {
  SourceMemory m = StreamingSource::memory(program, placement, input.gathered, keep);
  fixed.add("pinned weights", m.pins);
  fixed.add(fmt::format("{} stream slots", placement.slots), m.slots);
  fixed.add(fmt::format("{} slots for experts", placement.expert_slots), m.experts);
  fixed.add("embedding rows", m.gathered);
  fixed.add("I/O buffers", m.io);
  return fixed;
}

// Slots for experts beyond the two that are needed: at most one for each expert that a token uses, so that all of its
// reads are under way at once, and at most an eighth of what would else hold pins.
uint32_t more_expert_slots(const Program& program, const Placement& none_pinned, uint64_t capacity) {
  constexpr uint64_t kShare = 8;
  uint32_t used = 0;
  for (const ExpertGroup& g : program.expert_groups) used = std::max(used, g.used);
  if (used <= none_pinned.expert_slots) return 0;
  const uint64_t room = slot_room(program, none_pinned.pinned, BlockKind::on_demand);
  return static_cast<uint32_t>(std::min<uint64_t>(used - none_pinned.expert_slots, capacity / kShare / room));
}

// The most that can be pinned so that everything together stays within the budget: pins and slot depend on each other
// (the slot holds the largest block that is not pinned), so the capacity is lowered until the sum fits.
std::optional<Plan> fit(const PlanInput& input, const Program& program, uint32_t batch) {
  Account fixed = input.fixed(program, batch);
  Plan plan;
  plan.batch = batch;
  plan.placement.pinned.assign(program.blocks.size(), 1);
  auto settle = [&](bool keep) {
    plan.keep_gathered = keep;
    plan.placement.slot_bytes = slot_room(program, plan.placement.pinned, BlockKind::in_order);
    plan.account = with_weights(fixed, program, plan.placement, input, keep);
    return !input.budget || plan.account.total() <= *input.budget;
  };
  bool may_be_resident = !input.most_pinned || program.memory_bytes() <= *input.most_pinned;
  if (may_be_resident && (settle(true) || settle(false))) return plan;

  std::fill(plan.placement.pinned.begin(), plan.placement.pinned.end(), uint8_t{0});
  if (!settle(false)) return std::nullopt;
  uint64_t capacity = input.budget ? *input.budget - plan.account.total() : UINT64_MAX;
  if (uint32_t more = more_expert_slots(program, plan.placement, capacity); more > 0) {
    plan.placement.expert_slots += more;
    if (!settle(false)) return std::nullopt;
    capacity = input.budget ? *input.budget - plan.account.total() : UINT64_MAX;
  }
  if (input.most_pinned) capacity = std::min(capacity, *input.most_pinned);
  for (;;) {
    plan.placement.pinned = spread_pins(program, capacity);
    if (settle(false)) return plan;
    uint64_t over = plan.account.total() - *input.budget;
    capacity = capacity > over ? capacity - over : 0;
  }
}

// The chance that a pass of this many tokens visits a block: experts are taken to be chosen alike.
double chance_of(const Visit& visit, uint32_t tokens) {
  return visit.chance >= 1 ? 1.0 : 1.0 - std::pow(1.0 - visit.chance, static_cast<double>(tokens));
}

Bound bound_of_pass(const Program& program, const Placement& placement, const Rates& rates, uint32_t tokens) {
  double w = 0, streamed = 0;
  double rows = 0;  // streamed bytes that have to be rearranged; a pack has none
  for (const Visit& v : program.visits) {
    const double chance = chance_of(v, tokens);
    const Block& block = program.blocks[v.block];
    w += chance * static_cast<double>(block.memory_bytes);
    if (placement.pinned[v.block]) continue;
    streamed += chance * static_cast<double>(block.storage_bytes);
    for (const Piece& p : block.pieces) {
      const StoredTensor& t = program.tensors[p.tensor];
      if (t.layout == Layout::rows) rows += chance * static_cast<double>(t.stored_bytes(p.row_begin, p.row_end));
    }
  }
  // Streamed rows are written to memory by the device once and read once; the rearranged panel stays in the core's
  // cache, so a = 1 for GGUF files too. Computing cannot be faster than reading the weights, so F is at least w / M.
  Bound b;
  b.storage_s = streamed / rates.storage;
  b.memory_s = (w + streamed) / rates.memory;
  b.rearrange_s = w / rates.memory + rows / rates.rearrange;
  return b;
}

// Seconds of a pass, for comparing candidates. Reading and computing overlap; what does not is the latency of each
// streamed block.
double predicted_pass(const Plan& plan, const Program& program, const Rates& rates, uint32_t tokens) {
  double streamed_blocks = 0;
  for (const Visit& v : program.visits) streamed_blocks += plan.placement.pinned[v.block] ? 0 : chance_of(v, tokens);
  return bound_of_pass(program, plan.placement, rates, tokens).seconds() + streamed_blocks * rates.block_overhead_s;
}

// Seconds of a decode token and of one prompt token.
double predicted(const Plan& plan, const Program& program, const Rates& rates) {
  return predicted_pass(plan, program, rates, 1) + predicted_pass(plan, program, rates, plan.batch) / plan.batch;
}

void explain_experts(Plan& plan) {
  const uint64_t room = slot_room(plan.program, plan.placement.pinned, BlockKind::on_demand);
  if (room == 0) return;
  size_t experts = 0, pinned = 0;
  for (BlockId b = 0; b < plan.program.blocks.size(); ++b) {
    if (!plan.program.blocks[b].on_demand) continue;
    ++experts;
    pinned += plan.placement.pinned[b];
  }
  plan.reasons.push_back(fmt::format(
      "{} of {} expert blocks are pinned, after what every pass needs; the others come when a router chooses them, "
      "through {} slots of {}; {} of weights are read per token if all are chosen alike",
      pinned, experts, plan.placement.expert_slots, format_bytes(room),
      format_bytes(plan.placement.streamed_bytes(plan.program))));
}

void explain(Plan& plan, const PlanInput& input) {
  uint64_t streamed = plan.placement.streamed_bytes(plan.program);
  size_t pinned = static_cast<size_t>(std::count(plan.placement.pinned.begin(), plan.placement.pinned.end(), 1));
  if (streamed == 0) {
    plan.reasons.push_back(
        fmt::format("resident: all {} of weights fit beside the rest", format_bytes(plan.program.memory_bytes())));
  } else {
    plan.reasons.push_back(
        fmt::format("{} of {} blocks are pinned ({}), spread evenly over the pass so that reads hide behind computing",
                    pinned, plan.program.blocks.size(), format_bytes(plan.placement.pinned_bytes(plan.program))));
    if (plan.placement.slot_bytes > 0) {
      plan.reasons.push_back(
          fmt::format("{} stream per pass through two slots of {}: a third slot would buy nothing in a fixed order",
                      format_bytes(streamed), format_bytes(plan.placement.slot_bytes)));
    }
    explain_experts(plan);
  }
  plan.reasons.push_back(fmt::format("prompts are read {} tokens per pass", plan.batch));
  plan.reasons.push_back(
      fmt::format("bound of a decode pass: {:.1f} ms ({})", plan.bound.seconds() * 1e3,
                  input.rates.measured() ? "rates measured by ridge probe" : "assumed rates; run `ridge probe`"));
}

}  // namespace

double Bound::seconds() const { return std::max({storage_s, memory_s, rearrange_s}); }

Bound bound_of(const Program& program, const Placement& placement, const Rates& rates) {
  return bound_of_pass(program, placement, rates, 1);
}

namespace {

// Spreads pins over the blocks of one kind; returns what of the capacity is left.
uint64_t spread_over(const Program& program, uint64_t capacity, BlockKind kind, std::vector<uint8_t>& pinned) {
  std::vector<BlockId> order;  // of visits
  uint64_t total = 0, used = 0;
  for (const Visit& v : program.visits) {
    if (program.blocks[v.block].on_demand != (kind == BlockKind::on_demand)) continue;
    order.push_back(v.block);
    total += program.blocks[v.block].memory_bytes;
  }
  if (total == 0) return capacity;
  double share = std::min(1.0, static_cast<double>(capacity) / static_cast<double>(total)), due = 0;
  auto try_pin = [&](BlockId b) {
    uint64_t bytes = program.blocks[b].memory_bytes;
    if (pinned[b] || used + bytes > capacity) return false;
    pinned[b] = 1;
    used += bytes;
    return true;
  };
  for (BlockId b : order) {
    double bytes = static_cast<double>(program.blocks[b].memory_bytes);
    due += share * bytes;
    if (due >= bytes && try_pin(b)) due -= bytes;
  }
  // What is left over goes to the largest blocks that still fit.
  std::sort(order.begin(), order.end());
  std::stable_sort(order.begin(), order.end(), [&](BlockId a, BlockId b) {
    return program.blocks[a].memory_bytes > program.blocks[b].memory_bytes;
  });
  for (BlockId b : order) (void)try_pin(b);
  return capacity - used;
}

}  // namespace

// Time saved per byte is the chance of a visit: blocks that every pass visits come before experts.
std::vector<uint8_t> spread_pins(const Program& program, uint64_t capacity) {
  std::vector<uint8_t> pinned(program.blocks.size(), 0);
  const uint64_t left = spread_over(program, capacity, BlockKind::in_order, pinned);
  (void)spread_over(program, left, BlockKind::on_demand, pinned);
  return pinned;
}

Account smallest_account(const PlanInput& input) {
  std::optional<Account> least;
  auto consider = [&](Account account) {
    if (!least || account.total() < least->total()) least = std::move(account);
  };
  for (uint64_t slot : slot_candidates(input.program(0))) {
    Program program = input.program(slot);
    Placement none{.pinned = std::vector<uint8_t>(program.blocks.size(), 0)};
    none.slot_bytes = slot_room(program, none.pinned, BlockKind::in_order);
    consider(with_weights(input.fixed(program, input.batches.back()), program, none, input, false));
    Placement all{.pinned = std::vector<uint8_t>(program.blocks.size(), 1)};
    consider(with_weights(input.fixed(program, input.batches.back()), program, all, input, false));
  }
  return *least;
}

Result<Plan> make_plan(const PlanInput& input) {
  std::optional<Plan> best;
  double best_time = 0;
  Program whole = input.program(0);
  for (uint64_t slot : slot_candidates(whole)) {
    Program program = input.program(slot);
    for (uint32_t batch : input.batches) {
      std::optional<Plan> plan = fit(input, program, batch);
      if (!plan) continue;
      double time = predicted(*plan, program, input.rates);
      if (best && time >= best_time) continue;
      best = std::move(plan);
      best->program = program;
      best_time = time;
    }
    // A resident plan with the largest batch cannot be beaten by smaller slots.
    if (best && !best->placement.streams() && best->batch == input.batches.front()) break;
  }
  if (!best) {
    Account least = smallest_account(input);
    // What a process has on its heap differs by a few pages from run to run: the figure named holds for all of them.
    constexpr uint64_t kSpread = 256 * kKiB;
    uint64_t enough = (least.total() + kSpread + kMiB - 1) / kMiB;
    bool wish = input.budget_reason == "--memory";
    return does_not_fit(
        fmt::format("the model does not fit into {} ({}): the least it needs is\n{}{} {}M or more, or give a "
                    "smaller --context",
                    format_bytes(*input.budget), input.budget_reason, least.table(),
                    wish ? "give --memory" : "raise that limit to", enough));
  }
  best->bound = bound_of(best->program, best->placement, input.rates);
  explain(*best, input);
  return std::move(*best);
}

}  // namespace ridge
