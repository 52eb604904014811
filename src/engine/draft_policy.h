// How many drafts are worth checking: never so many that a pass with them is expected to be slower, per token, than the
// passes so far.
//
// Checking one more draft costs `slope` seconds (a line fitted to this run's passes), and is expected to yield one more
// token with the chance that it and all before it are right. It is worth it while chance > rate · slope, where rate is
// this run's tokens per second: the stopping rule of renewal processes (the marginal gain per second against the
// average one). Chances come from counting: a guess has a kind (how long the n-gram was, how sure the draft model was),
// and each kind remembers how often its last twenty or so were right. Nothing here changes what is generated.
//
//   DraftPolicy policy(priors);
//   while (policy.worth_checking(chance *= policy.rate(kind))) …
//   policy.learn(kind, right);
//   policy.note_pass({.checked = 4, .tokens = 3, .check_s = 0.1});
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "text/tokenizer.h"

namespace ridge {

inline constexpr size_t kGuessKinds = 16;

struct Guess {
  TokenId id = 0;
  uint8_t kind = 0;  // below kGuessKinds: what its drafter knows of its worth
};

struct DraftPass {
  size_t checked = 0;               // drafts in the pass
  size_t tokens = 1;                // that it yielded: the right ones and one more
  size_t guesses = 0;               // that were made for it, checked or not
  double check_s = 0, draft_s = 0;  // of the pass, and of making the guesses
};

// all: every guess is made and checked, whatever it costs (for tests and measurements).
enum class DraftLength : uint8_t { adaptive, all };

class DraftPolicy {
 public:
  // Chances to begin with, by kind.
  explicit DraftPolicy(const std::array<float, kGuessKinds>& priors, DraftLength length = DraftLength::adaptive);

  double rate(uint8_t kind) const;
  // `chance`: that this guess and all before it are right.
  bool worth_checking(double chance) const;
  // Whether to make another guess where that takes time; `chance`: that all before it are right. Now and then a first
  // guess is made although it does not seem worth it, ever more rarely: texts change.
  bool worth_guessing(double chance);
  // How many of these, from the first on, are worth checking.
  size_t worth_checking(std::span<const Guess> guesses) const;

  void learn(uint8_t kind, bool right);
  void note_pass(const DraftPass& pass);

 private:
  struct Count {
    double right = 0, tried = 0, prior = 0.5;
    double rate() const;
    void add(bool hit);
  };
  double spread() const;     // of the numbers of drafts in passes: sum of squared deviations
  double slope() const;      // seconds of one more draft in a pass
  double guess_s() const;    // seconds of a guess
  double threshold() const;  // tokens that a second yields

  DraftLength length_;
  std::array<Count, kGuessKinds> kinds_;
  Count all_;
  // Sums over passes, older ones fading: x drafts, y seconds.
  double w_ = 0, x_ = 0, y_ = 0, xx_ = 0, xy_ = 0, yy_ = 0;
  double tokens_ = 0, seconds_ = 0;
  double guesses_ = 0, guess_s_ = 0;
  uint32_t skipped_ = 0, interval_ = 1;  // passes without a guess since the last, and until the next
};

}  // namespace ridge
