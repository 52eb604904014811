#include "engine/speculation.h"

#include <algorithm>

namespace ridge {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Result<void> Drafter::begin(std::span<const TokenId>, const std::atomic<bool>*) { return {}; }

Speculator::Speculator(Engine& engine, std::unique_ptr<Drafter> drafter, const Sampler& sampler, DraftLength length)
    : engine_(engine), drafter_(std::move(drafter)), sampler_(sampler), policy_(drafter_->priors(), length) {
  line_.reserve(engine.context() + engine.verify_tokens());
}

Result<void> Speculator::begin(const std::atomic<bool>* interrupted) {
  const auto start = std::chrono::steady_clock::now();
  RIDGE_TRY(drafter_->begin(engine_.history(), interrupted));
  engine_.add_draft_time(TokenRole::prompt, std::chrono::steady_clock::now() - start);
  return {};
}

Result<std::span<float>> Speculator::advance(TokenId next, uint64_t left) {
  if (under_way_ && row_ < guesses_.size()) {
    const bool right = guesses_[row_].id == next;
    policy_.learn(guesses_[row_].kind, right);
    if (right && row_ < checked_) return logits_.row_span(++row_);
  }
  finish();
  // The last token that may be generated needs no logits, and all that are evaluated must fit into the context.
  const uint64_t room = engine_.context() - std::min(engine_.context(), engine_.position() + 1);
  const uint64_t most = std::min({left == 0 ? 0 : left - 1, room, uint64_t{engine_.verify_tokens()} - 1});
  line_.assign(engine_.history().begin(), engine_.history().end());
  line_.push_back(next);
  guesses_.clear();
  pass_ = {};
  if (most > 0) RIDGE_TRY(guess(most));
  return check(next, policy_.worth_checking(guesses_));
}

Result<void> Speculator::guess(size_t most) {
  const auto start = std::chrono::steady_clock::now();
  RIDGE_TRY(drafter_->draft({.line = line_, .most = most, .sampler = sampler_}, policy_, guesses_));
  RIDGE_CHECK(guesses_.size() <= most, "a drafter keeps to the limit");
  const auto vocabulary = static_cast<TokenId>(engine_.model().config().vocabulary);
  auto foreign =
      std::find_if(guesses_.begin(), guesses_.end(), [&](Guess g) { return g.id < 0 || g.id >= vocabulary; });
  guesses_.erase(foreign, guesses_.end());
  engine_.add_draft_time(TokenRole::generated, std::chrono::steady_clock::now() - start);
  pass_.guesses = guesses_.size();
  pass_.draft_s = seconds_since(start);
  return {};
}

Result<std::span<float>> Speculator::check(TokenId next, size_t count) {
  ids_.assign(1, next);
  for (size_t i = 0; i < count; ++i) ids_.push_back(guesses_[i].id);
  const auto start = std::chrono::steady_clock::now();
  logits_ = RIDGE_TRY(engine_.decode(std::span<const TokenId>(ids_)));
  pass_.check_s = seconds_since(start);
  pass_.checked = checked_ = count;
  row_ = 0;
  under_way_ = true;
  return logits_.row_span(0);
}

void Speculator::finish() {
  if (!under_way_) return;
  engine_.take_back(checked_ - row_);
  pass_.tokens = row_ + 1;
  policy_.note_pass(pass_);
  checked_ = row_ = 0;
  under_way_ = false;
}

}  // namespace ridge
