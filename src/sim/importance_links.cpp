#include "sim/importance_links.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ridge::sim {
namespace {

constexpr size_t kForetellers = 48;   // that a block has at most, for each of this pass and the one before
constexpr double kLeastTogether = 4;  // passes with both, for a pair to count
constexpr int kRounds = 4;            // through the trace
constexpr float kStep = 0.5f;

// A number that is learned, with the sum of its squared gradients.
struct Weight {
  float value = 0, squares = 1;
  void learn(float gradient) {
    squares += gradient * gradient;
    value += kStep * gradient / std::sqrt(squares);
  }
};
struct Link {
  uint32_t block = 0;
  Weight early, late;
};

float chance(float log_odds) { return 1 / (1 + std::exp(-log_odds)); }

class LinkLearner {
 public:
  LinkLearner(const LinkSamples& samples, const ImportanceModel& model)
      : position_(model.position), blocks_(samples.used_in.size()), uses_(blocks_), early_(blocks_), late_(blocks_) {
    for (size_t i = 0; i < samples.blocks.size() && samples.pass[i] <= samples.last;) {
      std::vector<uint32_t>& used = passes_.emplace_back();
      const uint64_t pass = samples.pass[i];
      for (; i < samples.blocks.size() && samples.pass[i] == pass; ++i) used.push_back(samples.blocks[i]);
      std::sort(used.begin(), used.end());
      used.erase(std::unique(used.begin(), used.end()), used.end());
      for (uint32_t b : used) uses_[b] += 1;
    }
    const double total = static_cast<double>(passes_.size());
    for (size_t b = 0; b < blocks_; ++b) {
      const double odds = (uses_[b] + 0.5) / (total - uses_[b] + 0.5);
      early_[b].value = late_[b].value = static_cast<float>(std::log(odds));
    }
  }

  void learn() {
    count(true);
    same_ = choose();
    count(false);
    next_ = choose();
    together_ = {};
    for (int round = 0; round < kRounds; ++round) walk();
  }

  const std::vector<std::vector<uint32_t>>& passes() const { return passes_; }
  void write(ImportanceModel& model) const {
    auto copy = [](const std::vector<std::vector<Link>>& from, std::vector<std::vector<ForetellingLink>>& to) {
      to.assign(from.size(), {});
      for (size_t b = 0; b < from.size(); ++b) {
        for (const Link& l : from[b]) to[b].push_back({l.block, l.early.value, l.late.value});
      }
    };
    copy(same_, model.same_pass);
    copy(next_, model.next_pass);
    model.late_from.assign(blocks_, 0);
    for (size_t a = 0; a < blocks_; ++a) {
      for (const Link& l : same_[a]) model.late_from[l.block] = std::max(model.late_from[l.block], position_[a]);
    }
    model.early_log_odds.clear();
    model.late_log_odds.clear();
    for (const Weight& w : early_) model.early_log_odds.push_back(w.value);
    for (const Weight& w : late_) model.late_log_odds.push_back(w.value);
  }

 private:
  // together_[from · blocks + block]: passes with `from`, and with `block` later in it, or in the next one.
  void count(bool same) {
    together_.assign(blocks_ * blocks_, 0);
    for (size_t p = same ? 0 : 1; p < passes_.size(); ++p) {
      for (uint32_t a : passes_[same ? p : p - 1]) {
        for (uint32_t b : passes_[p]) {
          if (!same || position_[a] < position_[b]) ++together_[a * blocks_ + b];
        }
      }
    }
  }

  // Square of the correlation of two blocks' uses; 0 where they are used together too seldom, or no more often than by
  // chance.
  double correlation(uint32_t from, uint32_t block) const {
    const double total = static_cast<double>(passes_.size()), both = together_[from * blocks_ + block];
    const double f = uses_[from], b = uses_[block], excess = both - f * b / total;
    if (both < kLeastTogether || excess <= 0) return 0;
    return excess * excess / (f * (1 - f / (total + 1)) * b * (1 - b / (total + 1)));
  }

  // By block that foretells: the links to those that chose it.
  std::vector<std::vector<Link>> choose() const {
    std::vector<std::vector<Link>> links(blocks_);
    std::vector<std::pair<double, uint32_t>> found;
    for (uint32_t block = 0; block < blocks_; ++block) {
      found.clear();
      for (uint32_t from = 0; from < blocks_; ++from) {
        if (const double c = correlation(from, block); c > 0) found.emplace_back(-c, from);
      }
      const size_t most = std::min(found.size(), kForetellers);
      std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(most), found.end());
      for (size_t i = 0; i < most; ++i) links[found[i].second].push_back({.block = block});
    }
    return links;
  }

  // One step for each pass: what its blocks and those of the pass before foretold, against what was used.
  void walk() {
    std::vector<float> early(blocks_), late(blocks_);
    static const std::vector<uint32_t> nothing;
    for (size_t p = 0; p < passes_.size(); ++p) {
      const std::vector<uint32_t>& before = p > 0 ? passes_[p - 1] : nothing;
      for (size_t b = 0; b < blocks_; ++b) {
        early[b] = early_[b].value;
        late[b] = late_[b].value;
      }
      for (uint32_t a : before) {
        for (const Link& l : next_[a]) {
          early[l.block] += l.early.value;
          late[l.block] += l.late.value;
        }
      }
      for (uint32_t a : passes_[p]) {
        for (const Link& l : same_[a]) late[l.block] += l.late.value;
      }
      for (size_t b = 0; b < blocks_; ++b) {
        early[b] = -chance(early[b]);
        late[b] = -chance(late[b]);
      }
      for (uint32_t b : passes_[p]) {
        early[b] += 1;
        late[b] += 1;
      }
      descend(before, passes_[p], early, late);
    }
  }
  void descend(const std::vector<uint32_t>& before, const std::vector<uint32_t>& now, const std::vector<float>& early,
               const std::vector<float>& late) {
    for (size_t b = 0; b < blocks_; ++b) {
      early_[b].learn(early[b]);
      late_[b].learn(late[b]);
    }
    for (uint32_t a : before) {
      for (Link& l : next_[a]) {
        l.early.learn(early[l.block]);
        l.late.learn(late[l.block]);
      }
    }
    for (uint32_t a : now) {
      for (Link& l : same_[a]) l.late.learn(late[l.block]);
    }
  }

  std::span<const float> position_;
  size_t blocks_;
  std::vector<std::vector<uint32_t>> passes_;  // blocks of each, ascending
  std::vector<double> uses_;
  std::vector<Weight> early_, late_;  // of each block without its foretellers
  std::vector<std::vector<Link>> same_, next_;
  std::vector<uint32_t> together_;
};

// The table of what was used lately: decayed uses of each block, up to the pass before, against what is used.
class LatelyLearner {
 public:
  LatelyLearner(const std::vector<std::vector<uint32_t>>& passes, size_t blocks)
      : passes_(passes), blocks_(blocks), decayed_(blocks), links_(blocks), base_(blocks) {}

  void learn() {
    choose();
    for (int round = 0; round < kLatelyRounds; ++round) walk();
  }
  void write(ImportanceModel& model) const {
    model.lately.assign(blocks_, {});
    model.lately_log_odds.clear();
    for (const Weight& w : base_) model.lately_log_odds.push_back(w.value);
    for (size_t a = 0; a < blocks_; ++a) {
      for (const auto& [block, weight] : links_[a]) model.lately[a].push_back({block, weight.value});
    }
  }

 private:
  static constexpr int kLatelyRounds = 2;
  static constexpr float kLeast = 0.02f;  // decayed uses below it are taken as none

  void decay(const std::vector<uint32_t>& used) {
    const auto keep = static_cast<float>(std::exp2(-1 / kLatelyHalfLife));
    for (float& d : decayed_) d *= keep;
    for (uint32_t b : used) decayed_[b] += 1 - keep;
  }

  // For each block those whose decayed uses go with its own uses most.
  void choose() {
    std::vector<double> together(blocks_ * blocks_), sum(blocks_), squares(blocks_), uses(blocks_);
    for (const std::vector<uint32_t>& used : passes_) {
      for (uint32_t b : used) {
        uses[b] += 1;
        for (size_t a = 0; a < blocks_; ++a) together[b * blocks_ + a] += decayed_[a];
      }
      for (size_t a = 0; a < blocks_; ++a) {
        sum[a] += decayed_[a];
        squares[a] += decayed_[a] * decayed_[a];
      }
      decay(used);
    }
    const double total = static_cast<double>(passes_.size());
    std::vector<std::pair<double, uint32_t>> found;
    for (uint32_t b = 0; b < blocks_; ++b) {
      found.clear();
      base_[b].value = static_cast<float>(std::log((uses[b] + 0.5) / (total - uses[b] + 0.5)));
      for (uint32_t a = 0; a < blocks_ && uses[b] >= kLeastTogether; ++a) {
        const double excess = together[b * blocks_ + a] - uses[b] * sum[a] / total;
        const double variance = squares[a] - sum[a] * sum[a] / total;
        if (excess > 0 && variance > 0) found.emplace_back(-excess * excess / variance, a);
      }
      const size_t most = std::min(found.size(), kForetellers);
      std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(most), found.end());
      for (size_t i = 0; i < most; ++i) links_[found[i].second].push_back({b, {}});
    }
  }

  void walk() {
    std::fill(decayed_.begin(), decayed_.end(), 0.0f);
    std::vector<float> odds(blocks_);
    for (const std::vector<uint32_t>& used : passes_) {
      for (size_t b = 0; b < blocks_; ++b) odds[b] = base_[b].value;
      for (size_t a = 0; a < blocks_; ++a) {
        if (decayed_[a] < kLeast) continue;
        for (const auto& [block, weight] : links_[a]) odds[block] += weight.value * decayed_[a];
      }
      for (float& o : odds) o = -chance(o);
      for (uint32_t b : used) odds[b] += 1;
      for (size_t b = 0; b < blocks_; ++b) base_[b].learn(odds[b]);
      for (size_t a = 0; a < blocks_; ++a) {
        if (decayed_[a] < kLeast) continue;
        for (auto& [block, weight] : links_[a]) weight.learn(odds[block] * decayed_[a]);
      }
      decay(used);
    }
  }

  const std::vector<std::vector<uint32_t>>& passes_;
  size_t blocks_;
  std::vector<float> decayed_;
  std::vector<std::vector<std::pair<uint32_t, Weight>>> links_;  // by block that foretells
  std::vector<Weight> base_;
};

}  // namespace

void learn_links(const LinkSamples& samples, ImportanceModel& model) {
  const size_t blocks = samples.used_in.size();
  model.same_pass.assign(blocks, {});
  model.next_pass.assign(blocks, {});
  model.lately.assign(blocks, {});
  model.early_log_odds.clear();
  model.late_log_odds.clear();
  model.lately_log_odds.clear();
  if (blocks > kMostLinked) return;
  LinkLearner learner(samples, model);
  learner.learn();
  learner.write(model);
  LatelyLearner lately(learner.passes(), blocks);
  lately.learn();
  lately.write(model);
}

}  // namespace ridge::sim
