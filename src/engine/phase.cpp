#include "engine/phase.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "engine/budget.h"
#include "model/outline.h"
#include "tensor/panel.h"

namespace ridge {
namespace {

constexpr uint64_t kPage = 4096;

// Where many rows share a pass, each slice of a matrix costs a barrier, and its workers read all activations. With 32
// panels for each worker both are little (docs/measurements.md); larger slots, of which there are fewer, wait for
// storage where much is streamed: a 128th of the budget at most.
constexpr uint32_t kManyRows = 64;
constexpr uint64_t kPanelsOfWorker = 32, kSlotShare = 128;

uint64_t least_slot(const Program& program, uint64_t workers, uint64_t budget) {
  uint64_t widest = 0;
  for (const Block& block : program.blocks) {
    for (const Piece& piece : block.pieces) {
      const StoredTensor& t = program.tensors[piece.tensor];
      widest = std::max<uint64_t>(widest, panel_bytes(t.type, t.cols));
    }
  }
  return std::min(kPanelsOfWorker * workers * widest, budget / kSlotShare);
}

}  // namespace

Program Phase::program(uint64_t slot) const {
  Outline outline(*options_.model, options_.shape, {.slot_bytes = slot, .kv_type = KvType::f32});
  options_.outline(outline);
  return std::move(outline).finish();
}

KvOptions Phase::cache_options() const {
  return {.context = options_.cache_positions, .batch = options_.shape.tokens, .type = KvType::f32};
}

Phase::Layout Phase::layout(const Program& program) const {
  const uint64_t workers = static_cast<uint64_t>(machine_.pool->size());
  Layout l;
  l.panels = round_up(workspace_floats_ * sizeof(float), kPage);
  l.attention = l.panels + workers * panel_scratch_bytes(program, options_.shape.tokens);
  l.total = l.attention + round_up(options_.attention_floats * sizeof(float), kPage);
  return l;
}

Account Phase::account(Account held, const Program& program) const {
  if (options_.cache_positions > 0) {
    held.add("keys and values of the encoder", KvCache::bytes(options_.model->kv_layers(), cache_options()));
  }
  held.add("activations", Slab::charge(layout(program).total));
  if (options_.one_at_a_time) {
    // The planner counts two slots; a block as it is read and as panels may need more.
    const Placement none{.pinned = std::vector<uint8_t>(program.blocks.size(), 0)};
    const uint64_t slots = StreamingSource::memory(program, none, {}, false).slots;
    const uint64_t needed = ContextSource::memory_bytes(program);
    held.add("a block as it is read, and ready", needed - std::min(needed, slots));
  }
  // One copy is in the plan; what planning freed of others may stay with the heap.
  held.add("parts of the model", 2 * program.heap_bytes());
  held.add("norms and biases", 2 * options_.model->vector_bytes());
  held.add("threads", static_cast<uint64_t>(machine_.pool->size()) * kThreadStack);
  held.add("page tables and reserve", kReserve + held.total() / 256);
  return held;
}

void Phase::measure() {
  Outline outline(*options_.model, options_.shape, {.record = false, .kv_type = KvType::f32});
  options_.outline(outline);
  workspace_floats_ = outline.workspace_floats();
}

PlanInput Phase::plan_input(const Account& held) const {
  PlanInput input;
  input.budget = machine_.budget;
  input.budget_reason = machine_.budget_reason;
  input.needs_less = kNeedsLess;
  input.most_pinned = options_.one_at_a_time ? std::optional<uint64_t>(0) : machine_.most_pinned;
  input.program = [this](uint64_t slot) { return program(slot); };
  input.fixed = [this, &held](const Program& p, uint32_t) { return account(held, p); };
  input.batches = {1};
  input.gathered = options_.gathered;
  if (options_.shape.tokens >= kManyRows) {
    input.least_slot = least_slot(program(0), static_cast<uint64_t>(machine_.pool->size()), machine_.budget);
  }
  input.rates = machine_.rates;
  return input;
}

Account Phase::smallest(const Account& held) {
  measure();
  return smallest_account(plan_input(held));
}

Result<void> Phase::plan(const Account& held) {
  measure();
  auto plan = make_plan(plan_input(held));
  if (!plan.ok()) {
    Error error = plan.error();
    error.message = fmt::format("{}: {}", options_.name, error.message);
    return error;
  }
  plan_ = std::move(plan).value();
  return {};
}

Result<std::unique_ptr<WeightSource>> Phase::make_source() const {
  const PackFunction* pack = machine_.kernels->kernels.pack;
  if (options_.one_at_a_time) {
    if (machine_.times != nullptr) machine_.times->source_tells();
    return std::unique_ptr<WeightSource>(RIDGE_TRY(ContextSource::create(
        {.program = &plan_.program, .pool = machine_.pool, .pack = pack, .io = machine_.io, .times = machine_.times})));
  }
  return std::unique_ptr<WeightSource>(RIDGE_TRY(StreamingSource::create({.program = &plan_.program,
                                                                          .placement = plan_.placement,
                                                                          .pool = machine_.pool,
                                                                          .pack = pack,
                                                                          .io = machine_.io,
                                                                          .gathered = options_.gathered,
                                                                          .keep_gathered = plan_.keep_gathered,
                                                                          .trace = machine_.trace})));
}

Result<void> Phase::open() {
  const Layout l = layout(plan_.program);
  workspace_ = RIDGE_TRY(Slab::allocate(l.total, {.what = "the activations"}));
  if (options_.cache_positions > 0) {
    cache_ = RIDGE_TRY(KvCache::create(options_.model->kv_layers(), cache_options()));
  }
  source_ = RIDGE_TRY(make_source());
  uint8_t* base = workspace_.data();
  auto floats = [&](uint64_t begin, uint64_t end) {
    return std::span<float>(reinterpret_cast<float*>(base + begin), (end - begin) / sizeof(float));
  };
  machinery_ = {.kernels = &machine_.kernels->kernels,
                .pool = machine_.pool,
                .source = source_.get(),
                .cache = &cache_,
                .workspace = floats(0, l.panels),
                .panels = {base + l.panels, l.attention - l.panels},
                .attention = floats(l.attention, l.total),
                .trace = machine_.trace,
                .profile = machine_.profile};
  return {};
}

void Phase::close() {
  machinery_ = {};
  source_.reset();
  cache_ = {};
  workspace_.reset();
}

}  // namespace ridge
