// Policies by importance: the cache manager (memory/cache_manager.h), with and without reading ahead, and importance as
// the cost of a miss (GreedyDual: Young 1994; with sizes and frequencies: Cherkasova 1998).
#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

#include "sim/importance_training.h"
#include "sim/policy.h"

namespace ridge::sim {
namespace {

constexpr double kReadAheadChance = 0.6;

double worth_of(const PolicySetup& setup, const Access& a) {
  return a.object < setup.worth.size() ? setup.worth[a.object] : static_cast<double>(a.size);
}

class ByImportance final : public Policy {
 public:
  ByImportance(const PolicySetup& setup, const ReadAheadOptions& ahead)
      : setup_(setup), numbers_(setup.train), learned_(learn(setup, ahead)), cache_(learned_.model, options(ahead)) {}

  Outcome access(const Access& a) override {
    Outcome out;
    while (next_pass_begins()) {
      note(cache_.begin_pass(), out);
      ++pass_;
    }
    ++index_;
    const uint32_t block = numbers_.of(a.object);
    if (block >= objects_.size()) objects_.resize(block + 1);
    objects_[block] = a;
    const CacheAccess found = cache_.access({.block = block, .bytes = a.size, .reload = worth_of(setup_, a)});
    out.hit = found.hit;
    out.kept = found.kept;
    note(found.change, out);
    return out;
  }

 private:
  void note(const CacheChange& change, Outcome& out) const {
    for (uint32_t b : change.left) out.left.push_back(objects_[b].object);
    for (uint32_t b : change.ahead) {
      out.ahead.push_back(objects_[b].object);
      out.ahead_size += objects_[b].size;
    }
  }
  static TrainedImportance learn(const PolicySetup& setup, const ReadAheadOptions& ahead) {
    if (setup.train == nullptr) return {.model = ImportanceModel::untrained()};
    return train_importance(*setup.train, {.capacity = setup.capacity, .worth = setup.worth, .read_ahead = ahead});
  }
  CacheManagerOptions options(const ReadAheadOptions& ahead) const {
    return {.capacity = setup_.capacity,
            .pinned = learned_.pinned,
            .pinned_bytes = learned_.pinned_bytes,
            .read_ahead = ahead};
  }
  // A trace without passes is one.
  bool next_pass_begins() const {
    if (setup_.trace == nullptr || setup_.trace->pass_begins.empty()) return index_ == 0 && pass_ == 0;
    return pass_ < setup_.trace->pass_begins.size() && setup_.trace->pass_begins[pass_] <= index_;
  }

  PolicySetup setup_;
  BlockNumbers numbers_;
  TrainedImportance learned_;
  CacheManager cache_;
  std::vector<Access> objects_;  // by number
  size_t index_ = 0, pass_ = 0;
};

// The cost of a miss of an object is its importance: uses in training (or, without, uses so far) times what a reload
// costs. Who is left longest loses: the level that evictions have reached is added to what comes or hits.
class MissCost final : public Policy {
 public:
  explicit MissCost(const PolicySetup& setup) : setup_(setup) {
    if (setup.train == nullptr) return;
    for (const Access& a : setup.train->accesses) uses_[a.object] += 1;
  }

  Outcome access(const Access& a) override {
    if (setup_.train == nullptr) uses_[a.object] += 1;
    const double cost = level_ + uses_[a.object] * worth_of(setup_, a) / static_cast<double>(a.size);
    if (auto found = here_.find(a.object); found != here_.end()) {
      order_.erase({found->second.first, a.object});
      found->second.first = cost;
      order_.insert({cost, a.object});
      return {.hit = true, .kept = true};
    }
    Outcome out;
    if (a.size > setup_.capacity) return out;
    while (used_ + a.size > setup_.capacity) {
      const auto [least, victim] = *order_.begin();
      if (least >= cost) return out;
      order_.erase(order_.begin());
      level_ = least;
      used_ -= here_.at(victim).second;
      here_.erase(victim);
      out.left.push_back(victim);
    }
    here_[a.object] = {cost, a.size};
    order_.insert({cost, a.object});
    used_ += a.size;
    out.kept = true;
    return out;
  }

 private:
  PolicySetup setup_;
  uint64_t used_ = 0;
  double level_ = 0;
  std::unordered_map<ObjectId, double> uses_;
  std::unordered_map<ObjectId, std::pair<double, uint64_t>> here_;  // cost and size
  std::set<std::pair<double, ObjectId>> order_;
};

}  // namespace

std::unique_ptr<Policy> make_importance(const PolicySetup& s) {
  return std::make_unique<ByImportance>(s, ReadAheadOptions{});
}
std::unique_ptr<Policy> make_importance_ahead(const PolicySetup& s) {
  return std::make_unique<ByImportance>(s, ReadAheadOptions{.least_chance = kReadAheadChance});
}
std::unique_ptr<Policy> make_miss_cost(const PolicySetup& s) { return std::make_unique<MissCost>(s); }

}  // namespace ridge::sim
