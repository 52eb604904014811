// What an engine will need: the account of all that is not weights, the plan for the rest, and the context that fits.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/log.h"
#include "base/units.h"
#include "engine/budget.h"
#include "engine/engine.h"
#include "engine/workspace.h"
#include "memory/expert_cache.h"

namespace ridge {
namespace {

constexpr uint64_t kDefaultContext = 4096, kSmallestContext = 512;
// A pass of 128 tokens already keeps the integer units busy; longer ones only cost workspace (docs/measurements.md).
constexpr uint32_t kLargestBatch = 128;
// A draft model reads its prompt in smaller passes: their workspace is taken from the pins of the model it drafts for.
constexpr uint32_t kDraftBatch = 32;

std::vector<uint32_t> batch_candidates(uint64_t context, uint32_t logits_rows, uint32_t largest) {
  uint64_t most = std::min<uint64_t>(context, largest);
  if (logits_rows > 1) most = std::min<uint64_t>(most, logits_rows);
  std::vector<uint32_t> out;
  for (uint32_t batch = largest; batch >= 1; batch /= 2) {
    if (batch <= most) out.push_back(batch);
  }
  return out;
}

// Text of the conversation, its tokens, and what a chat template makes of it on the way.
constexpr uint64_t kTextBase = 512 * kKiB, kTextPerPosition = 48, kCopiesOfText = 32;

}  // namespace

KvOptions Engine::kv_options(uint64_t context, uint32_t batch) const {
  // Under a promise every page is there before the first token; otherwise a context that is not used costs nothing.
  // A draft that is taken back must not have overwritten what the tokens before it see: rings hold all of a pass.
  return {.context = context,
          .batch = std::max({batch, options_.verify_tokens, drafts_}),
          .type = kv_type_,
          .touch = budget_is_promise()};
}

uint64_t Engine::message_room() const {
  // More than prose or code ever has.
  constexpr uint64_t kMostBytesPerToken = 64;
  // The line editor holds wide characters, more than once.
  constexpr uint64_t kCopiesOfMessage = kCopiesOfText + 16;
  const uint64_t whole = context_ * kMostBytesPerToken;
  if (!budget_is_promise()) return whole;
  return std::min(whole, (kTextBase + context_ * kTextPerPosition) / kCopiesOfMessage + options_.text_bytes);
}

// All that is not weights, of this model alone.
Account Engine::own_account(const Program& program, uint32_t batch, uint64_t context) const {
  Account a;
  a.add(fmt::format("KV cache, {}", counted(context, "position")),
        KvCache::bytes(model_->kv_layers(), kv_options(context, batch)));
  WorkspaceNeeds needs{.batch = batch,
                       .logits_rows = options_.logits_rows,
                       .context = context,
                       .threads = pool_->size(),
                       .exact = options_.numerics == Numerics::exact};
  const uint64_t plain = Slab::charge(workspace_layout(*model_, program, needs).total);
  a.add(fmt::format("activations, {} per pass", counted(batch, "token")), plain);
  // A layout walks through the model, and the planner asks for many accounts: a second walk only where there are
  // drafts.
  if (options_.verify_tokens > 1) {
    needs.verify_tokens = options_.verify_tokens;
    const uint64_t all = Slab::charge(workspace_layout(*model_, program, needs).total);
    // The line of tokens that n-grams are looked up in is a copy.
    a.add(fmt::format("checking {} per pass", counted(options_.verify_tokens - 1, "draft")),
          all - plain + context * sizeof(TokenId));
  }
  // One copy is in the plan; what planning freed of others may stay with the heap.
  a.add("parts of the model", 2 * program.heap_bytes());
  if (options_.states) a.add("saving and loading states", state_bytes(context));
  if (training_) {
    a.add("tasks of the cache", ExpertCache::training_bytes(program.blocks.size(), training_->tasks.size()));
  }
  if (options_.record) a.add("recording of visits", recording_limit(program, context).bytes());
  a.add("norms and biases", 2 * model_->vector_bytes());
  if (!model_->adapters().empty()) a.add("adapters", model_->adapters().bytes());
  const uint64_t text = kTextBase + context * kTextPerPosition + options_.text_bytes * kCopiesOfText;
  const uint64_t sampler = uint64_t{model_->config().vocabulary} * 8;
  // A drafter's sampler may see logits with as many rows as the large model has (draft_model.h): those are copies.
  if (drafts_ > 0) {
    a.add("sampler and logits", 2 * sampler);
  } else {
    a.add("sampler and text", sampler + text);
  }
  return a;
}

Account Engine::fixed_account(const Program& program, uint32_t batch, uint64_t context) const {
  if (drafts_ > 0) return own_account(program, batch, context);
  Account a;
  a.add("program and libraries", process_.mapped_files);
  a.add("tokenizer, metadata and heap", process_.anonymous);
  a.add(own_account(program, batch, context));
  if (draft_) {
    for (const AccountItem& item : draft_->plan_.account.items()) a.add("draft model: " + item.name, item.bytes);
  }
  a.add("threads", static_cast<uint64_t>(pool_->size()) * kThreadStack);
  if (options_.trace != nullptr) a.add("trace", options_.trace->memory_bytes());
  a.add("page tables and reserve", kReserve + a.total() / 256);
  return a;
}

PlanInput Engine::plan_input(uint64_t context) const {
  PlanInput input;
  if (drafts_ == 0) input.budget = budget_;
  input.budget_reason = budget_reason_;
  input.most_pinned = options_.most_pinned;
  input.pins = options_.pins;
  input.expert_policy = options_.expert_policy;
  input.program = [this](uint64_t slot) {
    return model_->program({.tokens = 1, .role = TokenRole::generated},
                           {.slot_bytes = slot, .exact = options_.numerics == Numerics::exact, .kv_type = kv_type_});
  };
  input.fixed = [this, context](const Program& program, uint32_t batch) {
    return fixed_account(program, batch, context);
  };
  input.batches = batch_candidates(context, options_.logits_rows, drafts_ > 0 ? kDraftBatch : kLargestBatch);
  input.prompt = [this](uint64_t slot, uint32_t tokens) {
    return model_->program({.tokens = tokens},
                           {.slot_bytes = slot, .exact = options_.numerics == Numerics::exact, .kv_type = kv_type_});
  };
  input.gathered = model_->gathered();
  input.live = live_room();
  input.rates = rates_;
  return input;
}

// A draft model stays whole: it is small, and what it saves is passes of the large one.
LiveRoom Engine::live_room() const {
  if (drafts_ > 0 || options_.floor == uint64_t{0}) return LiveRoom::none;
  return options_.floor ? LiveRoom::always : LiveRoom::where_free;
}

Result<Plan> Engine::plan_for(uint64_t context) const {
  if (draft_) RIDGE_TRY(draft_->settle_draft(context));
  return make_plan(plan_input(context));
}

// The user's context, or the model's up to 4096; under a budget the largest power of two from 512 that leaves room for
// the slots and a quarter of the weights.
Result<void> Engine::choose_context() {
  uint64_t wish = options_.context;
  if (wish == 0) wish = std::min<uint64_t>(model_->config().context, kDefaultContext);
  if (options_.context > model_->config().context) {
    note(fmt::format("the model was trained on {} positions; beyond them its answers get worse",
                     model_->config().context));
  }
  if (options_.context == 0 && options_.default_context != 0) wish = options_.default_context;
  if (options_.context != 0 || options_.default_context != 0) {
    plan_ = RIDGE_TRY(plan_for(wish));
    context_ = wish;
    return {};
  }
  for (uint64_t context = wish; context > kSmallestContext; context = std::bit_floor(context - 1)) {
    auto plan = plan_for(context);
    if (!plan.ok()) continue;
    uint64_t quarter = plan.value().program.memory_bytes() / 4;
    const bool pins = options_.pins == PinRule::planned || options_.pins == PinRule::leading;
    if (plan.value().placement.streams() && pins &&
        plan.value().placement.pinned_bytes(plan.value().program) < quarter) {
      continue;
    }
    plan_ = std::move(plan).value();
    context_ = context;
    break;
  }
  if (context_ == 0) {
    context_ = std::min(wish, kSmallestContext);
    plan_ = RIDGE_TRY(plan_for(context_));
  }
  if (context_ < wish) note(fmt::format("context {}, so that weights find room; --context asks for another", context_));
  return {};
}

Result<std::vector<Engine::Needs>> Engine::needs(const EngineOptions& options, std::span<const uint64_t> contexts) {
  Engine engine;
  engine.options_ = options;
  RIDGE_TRY(engine.prepare());
  std::vector<Needs> out;
  for (uint64_t context : contexts) {
    PlanInput input = engine.plan_input(context);
    input.budget = std::nullopt;
    Needs needs{.context = context, .program = engine.process_.mapped_files, .kv_type = engine.kv_type_};
    needs.smallest = smallest_account(input).total();
    needs.kv = KvCache::bytes(engine.model_->kv_layers(), engine.kv_options(context, 1));
    needs.resident = RIDGE_TRY(make_plan(input)).account.total();
    out.push_back(needs);
  }
  return out;
}

}  // namespace ridge
