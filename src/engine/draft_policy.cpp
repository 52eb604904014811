#include "engine/draft_policy.h"

#include <algorithm>

#include "base/check.h"

namespace ridge {
namespace {

constexpr double kPriorTries = 3;      // what a prior is worth, in observations
constexpr double kForgetGuess = 0.97;  // per observation: a memory of thirty-three
constexpr double kForgetPass = 0.97;   // per pass
constexpr double kForgetLine = 0.99;   // per pass, for what a draft costs: that changes slowly
// Before anything was measured: a draft costs a tenth of a pass, give or take as much (docs/measurements.md has what it
// costs here).
constexpr double kPriorSlope = 0.1;
// Below this spread of the numbers of drafts (sum of squares) a line through the passes says little.
constexpr double kEnoughSpread = 6;
constexpr double kFirstThreshold = 0.2;
constexpr uint32_t kLongestInterval = 64;

}  // namespace

double DraftPolicy::Count::rate() const { return (right + prior * kPriorTries) / (tried + kPriorTries); }

void DraftPolicy::Count::add(bool hit) {
  right = right * kForgetGuess + (hit ? 1 : 0);
  tried = tried * kForgetGuess + 1;
}

DraftPolicy::DraftPolicy(const std::array<float, kGuessKinds>& priors, DraftLength length) : length_(length) {
  for (size_t k = 0; k < kGuessKinds; ++k) kinds_[k].prior = static_cast<double>(priors[k]);
  all_.prior = 0.6;
}

double DraftPolicy::rate(uint8_t kind) const { return kinds_[kind].rate(); }

double DraftPolicy::spread() const { return xx_ - x_ * x_ / w_; }

double DraftPolicy::slope() const {
  const double mean_x = x_ / w_, mean_y = y_ / w_;
  const double plain = mean_y / (1 + kPriorSlope * mean_x);
  const double sxy = xy_ - w_ * mean_x * mean_y, syy = yy_ - w_ * mean_y * mean_y;
  // The better the passes so far lie on a line, the less the prior weighs (Bayesian regression: variance of the noise
  // by that of the prior). On a machine with other work the noise is as large as a pass.
  constexpr double kLeastWeight = 1;
  const double noise = std::max(0.0, syy - (spread() > 0 ? sxy * sxy / spread() : 0)) / w_;
  const double weight = std::max(kLeastWeight, noise / (kPriorSlope * plain * kPriorSlope * plain));
  const double s = (sxy + weight * kPriorSlope * plain) / (spread() + weight);
  return std::clamp(s, 0.0, mean_y);
}

double DraftPolicy::guess_s() const { return guesses_ > 0 ? guess_s_ / guesses_ : 0; }

double DraftPolicy::threshold() const { return seconds_ > 0 ? tokens_ / seconds_ : 0; }

bool DraftPolicy::worth_checking(double chance) const {
  if (length_ == DraftLength::all) return true;
  if (w_ == 0) return chance > kFirstThreshold;
  return chance > threshold() * slope();
}

size_t DraftPolicy::worth_checking(std::span<const Guess> guesses) const {
  if (length_ == DraftLength::all) return guesses.size();
  double chance = 1;
  size_t count = 0;
  for (; count < guesses.size(); ++count) {
    chance *= rate(guesses[count].kind);
    if (!worth_checking(chance)) break;
  }
  // Passes that are all alike do not tell what a draft costs: now and then one is different.
  constexpr double kFewPasses = 4;
  const bool alike = w_ >= kFewPasses && spread() < kEnoughSpread && static_cast<double>(count) < x_ / w_ + 0.5;
  return alike ? count / 2 : count;
}

bool DraftPolicy::worth_guessing(double chance) {
  if (length_ == DraftLength::all) return true;
  const double gain = chance * all_.rate();
  const bool worth = w_ == 0 ? gain > kFirstThreshold : gain > threshold() * (slope() + guess_s());
  if (worth) {
    interval_ = 1;
    skipped_ = 0;
    return true;
  }
  if (chance < 1 || ++skipped_ < interval_) return false;
  skipped_ = 0;
  interval_ = std::min(2 * interval_, kLongestInterval);
  return true;
}

void DraftPolicy::learn(uint8_t kind, bool right) {
  RIDGE_CHECK(kind < kGuessKinds, "a kind of guess");
  kinds_[kind].add(right);
  all_.add(right);
}

void DraftPolicy::note_pass(const DraftPass& pass) {
  for (double* sum : {&w_, &x_, &y_, &xx_, &xy_, &yy_}) *sum *= kForgetLine;
  for (double* sum : {&tokens_, &seconds_, &guesses_, &guess_s_}) *sum *= kForgetPass;
  const auto x = static_cast<double>(pass.checked);
  // Somebody else's work on this machine is no reason to stop drafting: what is far off counts as a little off.
  constexpr double kOutlier = 4;
  const double y = w_ > 1 ? std::min(pass.check_s, kOutlier * y_ / w_) : pass.check_s;
  w_ += 1;
  x_ += x;
  y_ += y;
  xx_ += x * x;
  xy_ += x * y;
  yy_ += y * y;
  tokens_ += static_cast<double>(pass.tokens);
  seconds_ += y + pass.draft_s;
  guesses_ += static_cast<double>(pass.guesses);
  guess_s_ += pass.draft_s;
}

}  // namespace ridge
