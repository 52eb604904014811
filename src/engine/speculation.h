// Several tokens per pass: a drafter guesses what comes next, one pass checks all guesses, and those that are right
// are kept (docs/speculation.md).
//
// Exact: the logits of a draft's row are those of the token on its own (docs/numerics.md), the token after each row is
// sampled as ever, and a draft counts only if it is that very token. So every byte of output is the one without drafts,
// whatever the seed; drafters and policies change nothing but speed.
//
//   Speculator speculator(engine, std::make_unique<NgramDrafter>(4), sampler);
//   speculator.begin(interrupted);                                   // the prompt has been evaluated
//   std::span<float> logits = RIDGE_TRY(speculator.advance(token));  // instead of engine.decode(token)
//   speculator.finish();                                             // takes back what nobody asked for
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/draft_policy.h"
#include "engine/engine.h"
#include "text/sampler.h"

namespace ridge {

// What a drafter is asked: the tokens so far (one more than was evaluated), and how many guesses at most.
struct DraftRequest {
  std::vector<TokenId>& line;  // a drafter may append to it, with room for `most`, if it takes that back
  size_t most = 0;
  const Sampler& sampler;  // in the state in which it will choose the first of them
};

// Makes guesses. Its own errors end the run; bad guesses only cost time.
class Drafter {
 public:
  virtual ~Drafter() = default;
  virtual std::string description() const = 0;  // "n-grams of up to 4 tokens"
  virtual const std::array<float, kGuessKinds>& priors() const = 0;
  // The prompt, before the first request.
  virtual Result<void> begin(std::span<const TokenId> line, const std::atomic<bool>* interrupted);
  // Appends guesses to `out`, at most `most`; stops at the first that is not worth checking, which it may append.
  virtual Result<void> draft(const DraftRequest& request, DraftPolicy& policy, std::vector<Guess>& out) = 0;
};

// One per conversation: what it has learnt of the text stays. Everything handed to it must outlive it.
class Speculator {
 public:
  Speculator(Engine& engine, std::unique_ptr<Drafter> drafter, const Sampler& sampler,
             DraftLength length = DraftLength::adaptive);

  std::string description() const { return drafter_->description(); }
  Result<void> begin(const std::atomic<bool>* interrupted);
  // Logits of the token after `next`, valid until the next call; `left`: tokens that may still be generated after it.
  // Evaluates `next` unless a pass has done that already. Errors: those of Engine::decode and of the drafter.
  Result<std::span<float>> advance(TokenId next, uint64_t left);
  // Where the timeline would be without drafts.
  uint64_t position() const { return engine_.position() - (checked_ - row_); }
  void finish();

 private:
  Result<void> guess(size_t most);
  Result<std::span<float>> check(TokenId next, size_t count);

  Engine& engine_;
  std::unique_ptr<Drafter> drafter_;
  const Sampler& sampler_;
  DraftPolicy policy_;
  std::vector<TokenId> line_, ids_;
  std::vector<Guess> guesses_;
  DraftPass pass_;
  Matrix<float> logits_;  // [1 + checked_, vocabulary]
  size_t checked_ = 0;    // guesses in the last pass
  size_t row_ = 0;        // so many of them were right so far
  bool under_way_ = false;
};

}  // namespace ridge
