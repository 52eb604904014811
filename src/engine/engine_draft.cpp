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
  draft_->drafts_ = true;
  draft_->pool_ = pool_;
  draft_->options_ = {.path = options_.draft_path,
                      .memory = options_.memory,
                      .context = options_.context,
                      .isa = options_.isa,
                      .numerics = options_.numerics == Numerics::fast ? Numerics::fast : Numerics::standard,
                      .io = options_.io,
                      .verify_tokens = options_.verify_tokens};
  RIDGE_TRY(draft_->prepare());
  RIDGE_TRY(check_draft_vocabulary());
  draft_->tokenizer_.reset();
  return {};
}

// Drafts are token ids: they must mean the same in both.
Result<void> Engine::check_draft_vocabulary() const {
  const std::string& where = draft_->model_->file().metadata().where;
  if (tokenizer_ == nullptr) {
    return bad_input(
        fmt::format("{}: has no tokenizer, so that nobody can tell whether the draft model {} has the same one: "
                    "leave --draft-model out",
                    model_->file().metadata().where, where));
  }
  const Tokenizer &own = *tokenizer_, &other = *draft_->tokenizer_;
  const size_t common = std::min(own.size(), other.size());
  if (std::max(own.size(), other.size()) - common > kPadding) {
    return bad_input(
        fmt::format("--draft-model {}: its vocabulary has {} tokens, the model's {}: take a smaller model of the same "
                    "family, or --draft-ngram",
                    where, other.size(), own.size()));
  }
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
