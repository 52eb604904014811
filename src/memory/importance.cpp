#include "memory/importance.h"

#include <algorithm>
#include <cmath>

namespace ridge {
namespace {

constexpr size_t kDecayed = 2;  // index of the first decayed frequency

const float kLatelyDecay = static_cast<float>(std::exp2(-1 / kLatelyHalfLife));

// decay^turns of each half-life, for turns that matter; later ones are taken as the last.
constexpr size_t kTurns = 2048;
const std::array<std::vector<double>, kHalfLives.size()>& decay_tables() {
  static const auto tables = [] {
    std::array<std::vector<double>, kHalfLives.size()> t;
    for (size_t i = 0; i < kHalfLives.size(); ++i) {
      for (size_t n = 0; n < kTurns; ++n) t[i].push_back(std::exp2(-static_cast<double>(n) / kHalfLives[i]));
    }
    return t;
  }();
  return tables;
}

double decay(size_t half_life, uint64_t turns) {
  return decay_tables()[half_life][std::min<uint64_t>(turns, kTurns - 1)];
}

}  // namespace

ImportanceModel ImportanceModel::untrained() {
  ImportanceModel m;
  m.weights = {0, 0, 0, 0.1, 0.2, 0.3, 0.4, 0, 0};
  return m;
}

Importance::History& Importance::history(uint32_t block) {
  if (block >= blocks_.size()) blocks_.resize(block + 1);
  History& h = blocks_[block];
  if (h.known) return h;
  h.known = true;
  h.chances = pass_;
  if (block < model_.frequency.size()) {
    h.chances = 0;
    h.decayed.fill(model_.frequency[block]);
    h.position = model_.position[block];
    return h;
  }
  // Where the pass is now, as far as the last one tells.
  const double uses = static_cast<double>(std::max<uint64_t>(uses_in_last_pass_, uses_in_pass_ + 1));
  h.position = static_cast<float>(static_cast<double>(uses_in_pass_) / uses);
  return h;
}

void Importance::begin_pass() {
  if (uses_in_pass_ == 0 && pass_ == 0) {
    for (uint32_t b = 0; b < model_.frequency.size(); ++b) (void)history(b);
  }
  ++pass_;
  uses_in_last_pass_ = uses_in_pass_;
  uses_in_pass_ = 0;
  now_ = 0;
}

// Turns of the block that have gone by: one in each pass before, and that of this pass if it is over.
uint64_t Importance::chances(const History& h) const {
  const uint64_t before = pass_ > 0 ? pass_ - 1 : 0;
  return std::max(h.chances, before + (h.position < now_ ? 1 : 0));
}

void Importance::note_use(uint32_t block) {
  History& h = history(block);
  now_ = h.position;
  ++uses_in_pass_;
  const uint64_t missed = chances(h) - h.chances;
  for (size_t i = 0; i < kHalfLives.size(); ++i) {
    h.decayed[i] = h.decayed[i] * decay(i, missed + 1) + (1 - decay(i, 1));
  }
  h.chances = std::max(h.chances, pass_);
  if (block >= model_.same_pass.size()) return;
  foretell(model_.same_pass[block], pass_);
  foretell(model_.next_pass[block], pass_ + 1);
  const float kNew = 1 - kLatelyDecay;
  for (const LatelyLink& link : model_.lately[block]) {
    History& to = history(link.block);
    to.lately = lately(to) + kNew * link.log_odds;
    to.lately_of = pass_;
  }
}

float Importance::lately(const History& h) const {
  return h.lately * std::pow(kLatelyDecay, static_cast<float>(pass_ - h.lately_of));
}

double Importance::foretold_lately(uint32_t block) const {
  if (block >= model_.lately_log_odds.size() || block >= blocks_.size()) return 0;
  return 1 / (1 + std::exp(-static_cast<double>(model_.lately_log_odds[block] + lately(blocks_[block]))));
}

void Importance::foretell(std::span<const ForetellingLink> links, uint64_t pass) {
  for (const ForetellingLink& link : links) {
    History& h = history(link.block);
    if (h.evidence_of != pass_) {
      h.evidence = {pass_ == h.evidence_of + 1 ? h.evidence[1] : Evidence{}, Evidence{}};
      h.evidence_of = pass_;
    }
    h.evidence[pass - pass_].early += link.early;
    h.evidence[pass - pass_].late += link.late;
  }
}

Importance::Evidence Importance::evidence(const History& h, uint64_t pass) const {
  if (pass < h.evidence_of || pass - h.evidence_of > 1) return {};
  return h.evidence[pass - h.evidence_of];
}

double Importance::foretold(uint32_t block) const {
  if (block >= model_.early_log_odds.size() || block >= blocks_.size()) return 0;
  const History& h = blocks_[block];
  const Evidence seen = evidence(h, chances(h) + 1);
  const double early = model_.early_log_odds[block] + seen.early, late = model_.late_log_odds[block] + seen.late;
  // Of what foretells it in its own pass, so much has had its turn.
  const double from = static_cast<double>(model_.late_from[block]), now = static_cast<double>(now_);
  const double known = h.position > now_ && from > 0 ? std::min(1.0, now / from) : 0;
  return 1 / (1 + std::exp(-(early + known * (late - early))));
}

double Importance::until_turn(uint32_t block) const {
  const double ahead = static_cast<double>(blocks_[block].position) - static_cast<double>(now_);
  return ahead > 0 ? ahead : ahead + 1;
}

ImportanceFeatures Importance::features(uint32_t block) const {
  const History& h = blocks_[block];
  ImportanceFeatures f = {1};
  f[1] = block < model_.frequency.size() ? model_.frequency[block] : 0;
  const uint64_t missed = chances(h) - h.chances;
  for (size_t i = 0; i < kHalfLives.size(); ++i) f[kDecayed + i] = h.decayed[i] * decay(i, missed);
  f[kDecayed + kHalfLives.size()] = foretold(block);
  f[kDecayed + kHalfLives.size() + 1] = foretold_lately(block);
  return f;
}

uint64_t Importance::heap_bytes(size_t blocks) { return 2 * blocks * sizeof(History); }

double Importance::expected_uses(uint32_t block) const {
  const ImportanceFeatures f = features(block);
  double uses = 0;
  for (size_t i = 0; i < kImportanceFeatures; ++i) uses += model_.weights[i] * f[i];
  return uses * std::pow(model_.discount, until_turn(block));
}

}  // namespace ridge
