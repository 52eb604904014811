// The small model of --draft-model: an engine within an engine, on its threads and in its budget.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "engine/engine.h"

namespace ridge {
namespace {

// Files of one family differ by the rows that fill the vocabulary up to a round number.
constexpr size_t kPadding = 512;

}  // namespace

// Called when the threads are there, and before the heap is measured: its description is part of that.
Result<void> Engine::prepare_draft() {
  draft_.reset(new Engine());
  draft_->drafts_ = options_.verify_tokens;
  draft_->pool_ = pool_;
  draft_->options_ = {.path = options_.draft_path,
                      .memory = options_.memory,
                      .context = options_.context,
                      .isa = options_.isa,
                      .numerics = options_.numerics == Numerics::fast ? Numerics::fast : Numerics::standard,
                      .io = options_.io,
                      .need_tokenizer = options_.need_tokenizer};
  RIDGE_TRY(draft_->prepare());
  RIDGE_TRY(check_draft_vocabulary());
  draft_->tokenizer_.reset();
  return {};
}

// Drafts are token ids: they must mean the same in both.
Result<void> Engine::check_draft_vocabulary() const {
  const std::string& where = draft_->model_->file().metadata().where;
  // Who does without a tokenizer knows what the ids mean; sizes are all that can be compared.
  const bool texts = tokenizer_ != nullptr && draft_->tokenizer_ != nullptr;
  const size_t here = texts ? tokenizer_->size() : model_->config().vocabulary;
  const size_t there = texts ? draft_->tokenizer_->size() : draft_->model_->config().vocabulary;
  const size_t common = std::min(here, there);
  if (std::max(here, there) - common > kPadding) {
    return bad_input(
        fmt::format("--draft-model {}: its vocabulary has {} tokens, the model's {}: take a smaller model of the same "
                    "family, or --draft-ngram",
                    where, there, here));
  }
  if (!texts) return {};
  const Tokenizer &own = *tokenizer_, &other = *draft_->tokenizer_;
  for (size_t i = 0; i < common; ++i) {
    const auto id = static_cast<TokenId>(i);
    if (own.text(id) == other.text(id)) continue;
    return bad_input(
        fmt::format("--draft-model {}: token {} is '{}' there and '{}' in the model: take a smaller model of the same "
                    "family, or --draft-ngram",
                    where, id, other.text(id), own.text(id)));
  }
  return {};
}

void Engine::add_draft_time(TokenRole role, std::chrono::nanoseconds time) {
  times_.draft += time;
  (role == TokenRole::prompt ? times_.prompt : times_.decode) += time;
}

// All of its weights stay in memory; what that takes is part of the account of the model it drafts for.
Result<void> Engine::settle_draft(uint64_t context) {
  if (context_ == context) return {};
  plan_ = RIDGE_TRY(make_plan(plan_input(context)));
  context_ = context;
  return {};
}

}  // namespace ridge
