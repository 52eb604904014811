// Policies that know the order beforehand: Belady's (1966), with the choice to keep nothing new (bypass), and static
// pins. With bypass and equal sizes a cyclic order of N blocks hits C/N: what pins reach without looking ahead.
#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/check.h"
#include "plan/knapsack.h"
#include "sim/policy.h"

namespace ridge::sim {
namespace {

// Optimal for equal sizes; with others a good guess (the exact choice is NP-hard).
class Belady final : public Policy {
 public:
  explicit Belady(uint64_t capacity) : capacity_(capacity) {}

  Outcome access(const Access& a) override {
    Outcome out;
    if (auto found = entries_.find(a.object); found != entries_.end()) {
      by_next_.erase({found->second.next, a.object});
      out.hit = true;
      found->second.next = a.next;
      by_next_.insert({a.next, a.object});
      out.kept = true;
      return out;
    }
    if (a.size > capacity_ || a.next == kNever || !worth_keeping(a)) return out;
    while (size_ + a.size > capacity_) {
      const auto victim = std::prev(by_next_.end());
      out.left.push_back(victim->second);
      size_ -= entries_.at(victim->second).size;
      entries_.erase(victim->second);
      by_next_.erase(victim);
    }
    entries_[a.object] = a;
    by_next_.insert({a.next, a.object});
    size_ += a.size;
    out.kept = true;
    return out;
  }

 private:
  // Everything that would have to leave is used later.
  bool worth_keeping(const Access& a) const {
    uint64_t room = capacity_ - size_;
    for (auto victim = by_next_.rbegin(); room < a.size; ++victim) {
      if (victim->first <= a.next) return false;
      room += entries_.at(victim->second).size;
    }
    return true;
  }
  uint64_t capacity_, size_ = 0;
  std::unordered_map<ObjectId, Access> entries_;
  std::set<std::pair<uint64_t, ObjectId>> by_next_;
};

class Pins final : public Policy {
 public:
  explicit Pins(std::unordered_set<ObjectId> pinned) : pinned_(std::move(pinned)) {}

  Outcome access(const Access& a) override {
    if (!pinned_.contains(a.object)) return {};
    const bool hit = !here_.insert(a.object).second;
    return {.hit = hit, .kept = true};
  }

 private:
  std::unordered_set<ObjectId> pinned_, here_;
};

const AccessTrace& pins_from(const PolicySetup& setup) {
  RIDGE_CHECK(setup.trace != nullptr, "pins are chosen from the trace that will be replayed, or from another");
  return setup.train != nullptr ? *setup.train : *setup.trace;
}

// Each object once, in the order of its first access.
std::vector<Access> first_accesses(const PolicySetup& setup) {
  std::unordered_set<ObjectId> seen;
  std::vector<Access> out;
  for (const Access& a : pins_from(setup).accesses) {
    if (seen.insert(a.object).second) out.push_back(a);
  }
  return out;
}

struct PinChoice {
  std::unordered_set<ObjectId> pinned;
  uint64_t used = 0, capacity = 0;

  bool pin(const Access& a) {
    if (used + a.size > capacity || !pinned.insert(a.object).second) return false;
    used += a.size;
    return true;
  }
  // In order, as far as room is left.
  void fill(std::span<const Access> order) {
    for (const Access& a : order) (void)pin(a);
  }
  // Evenly: a block is pinned when the share of what passed by that is due to pins has grown by its size.
  void spread(std::span<const Access> order) {
    double total = 0;
    for (const Access& a : order) total += static_cast<double>(a.size);
    if (total == 0) return;
    const double share = std::min(1.0, static_cast<double>(capacity - used) / total);
    // A little more than nothing to begin with: shares such as 1/3 must not fall short of a whole block by rounding.
    double due = 1e-9 * total;
    for (const Access& a : order) {
      const double size = static_cast<double>(a.size);
      due += share * size;
      if (due >= size && pin(a)) due -= size;
    }
    fill(order);
  }
};

}  // namespace

std::unique_ptr<Policy> make_belady(const PolicySetup& s) { return std::make_unique<Belady>(s.capacity); }

std::unique_ptr<Policy> make_pin_leading(const PolicySetup& setup) {
  PinChoice choice{.capacity = setup.capacity};
  choice.fill(first_accesses(setup));
  return std::make_unique<Pins>(std::move(choice.pinned));
}

std::unique_ptr<Policy> make_pin_strided(const PolicySetup& setup) {
  PinChoice choice{.capacity = setup.capacity};
  choice.spread(first_accesses(setup));
  return std::make_unique<Pins>(std::move(choice.pinned));
}

// What saves most seconds in a pass within the capacity: a knapsack. Of blocks that are alike those that lie evenly
// spread are taken.
std::unique_ptr<Policy> make_pin_worth(const PolicySetup& setup) {
  const std::vector<Access> order = first_accesses(setup);
  std::unordered_map<ObjectId, double> uses;
  for (const Access& a : pins_from(setup).accesses) uses[a.object] += 1;
  std::vector<KnapsackItem> items;
  for (const Access& a : order) {
    const double worth = a.object < setup.worth.size() ? setup.worth[a.object] : static_cast<double>(a.size);
    items.push_back({.value = worth * uses.at(a.object), .bytes = a.size});
  }
  const KnapsackResult best = solve_knapsack(items, setup.capacity);
  std::map<std::pair<double, uint64_t>, std::vector<size_t>> alike;
  for (size_t i = 0; i < items.size(); ++i) alike[{items[i].value, items[i].bytes}].push_back(i);
  std::unordered_set<ObjectId> pinned;
  for (const auto& [kind, members] : alike) {
    const auto taken = std::count_if(members.begin(), members.end(), [&](size_t i) { return best.taken[i] != 0; });
    const size_t count = static_cast<size_t>(taken);
    for (size_t k = 0; k < count; ++k) pinned.insert(order[members[k * members.size() / count]].object);
  }
  return std::make_unique<Pins>(std::move(pinned));
}

}  // namespace ridge::sim
