#include "plan/knapsack.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace ridge {
namespace {

// Sums in different orders differ in the last digits; less than this share of the bound is no difference.
constexpr double kRounding = 1e-12;

// Items of the same value and size.
struct Kind {
  double value = 0;
  uint64_t bytes = 0;
  std::vector<size_t> items;
};

double per_byte(const Kind& k) { return k.value / static_cast<double>(k.bytes); }

// Items that take room and are worth it, in descending order of value per byte; the larger of two with the same first.
std::vector<Kind> kinds_of(std::span<const KnapsackItem> items, uint64_t capacity) {
  std::vector<size_t> order(items.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::erase_if(order,
                [&](size_t i) { return items[i].value <= 0 || items[i].bytes == 0 || items[i].bytes > capacity; });
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (items[a].bytes != items[b].bytes) return items[a].bytes > items[b].bytes;
    return items[a].value > items[b].value;
  });
  std::vector<Kind> kinds;
  for (size_t i : order) {
    if (kinds.empty() || kinds.back().bytes != items[i].bytes || kinds.back().value != items[i].value) {
      kinds.push_back({.value = items[i].value, .bytes = items[i].bytes, .items = {}});
    }
    kinds.back().items.push_back(i);
  }
  std::stable_sort(kinds.begin(), kinds.end(), [](const Kind& a, const Kind& b) { return per_byte(a) > per_byte(b); });
  return kinds;
}

// Depth first over "how many of this kind", most first; the first leaf is the greedy choice.
class Search {
 public:
  Search(const std::vector<Kind>& kinds, uint64_t capacity, uint64_t most_steps)
      : kinds_(kinds), steps_left_(most_steps), room_(capacity), count_(kinds.size(), 0), best_count_(kinds.size(), 0) {
    bytes_before_.push_back(0);
    value_before_.push_back(0);
    for (const Kind& k : kinds_) {
      bytes_before_.push_back(bytes_before_.back() + k.bytes * k.items.size());
      value_before_.push_back(value_before_.back() + k.value * static_cast<double>(k.items.size()));
    }
    upper_bound_ = bound(0);
    slack_ = upper_bound_ * kRounding;
  }

  // True if the best found is proven.
  bool run() {
    take_from(0);
    for (;;) {
      if (best_ >= upper_bound_ - slack_) return true;
      // The last kind of which one less could lead to something better.
      size_t k = kinds_.size();
      while (k > 0 && !take_one_less(k - 1)) --k;
      if (k == 0) return true;
      if (steps_left_ == 0) return false;
      --steps_left_;
      take_from(k);
    }
  }

  double upper_bound() const { return upper_bound_; }
  const std::vector<uint64_t>& best_count() const { return best_count_; }

 private:
  // The most that kinds [from, end) can be worth in the room that is left, were they divisible.
  double bound(size_t from) const {
    const uint64_t end = bytes_before_[from] + room_;
    const auto past = std::upper_bound(bytes_before_.begin() + static_cast<ptrdiff_t>(from), bytes_before_.end(), end);
    const size_t whole = static_cast<size_t>(past - bytes_before_.begin()) - 1;  // kinds before it fit entirely
    double value = value_before_[whole] - value_before_[from];
    if (whole < kinds_.size()) value += static_cast<double>(end - bytes_before_[whole]) * per_byte(kinds_[whole]);
    return value;
  }

  void take_from(size_t first) {
    for (size_t k = first; k < kinds_.size(); ++k) {
      count_[k] = std::min<uint64_t>(kinds_[k].items.size(), room_ / kinds_[k].bytes);
      room_ -= count_[k] * kinds_[k].bytes;
      value_ += static_cast<double>(count_[k]) * kinds_[k].value;
    }
    if (value_ <= best_) return;
    best_ = value_;
    best_count_ = count_;
  }

  // One less of kind k, if what follows it might then make up for it; otherwise none of kind k, for the kinds before.
  bool take_one_less(size_t k) {
    if (count_[k] == 0) return false;
    const Kind& kind = kinds_[k];
    --count_[k];
    room_ += kind.bytes;
    value_ -= kind.value;
    if (value_ + bound(k + 1) > best_ + slack_) return true;
    // Still fewer of this kind, the densest from here on, can only be worse.
    room_ += count_[k] * kind.bytes;
    value_ -= static_cast<double>(count_[k]) * kind.value;
    count_[k] = 0;
    return false;
  }

  const std::vector<Kind>& kinds_;
  uint64_t steps_left_;
  std::vector<uint64_t> bytes_before_;  // of all items of the kinds before this one
  std::vector<double> value_before_;
  uint64_t room_;
  double value_ = 0, best_ = 0, upper_bound_ = 0, slack_ = 0;
  std::vector<uint64_t> count_, best_count_;
};

}  // namespace

KnapsackResult solve_knapsack(std::span<const KnapsackItem> items, uint64_t capacity, const KnapsackOptions& options) {
  KnapsackResult result;
  result.taken.assign(items.size(), 0);
  double free_value = 0;  // of what costs nothing
  for (size_t i = 0; i < items.size(); ++i) {
    RIDGE_CHECK(std::isfinite(items[i].value), "a value is a finite number");
    if (items[i].bytes != 0 || items[i].value <= 0) continue;
    result.taken[i] = 1;
    free_value += items[i].value;
  }
  const std::vector<Kind> kinds = kinds_of(items, capacity);
  Search search(kinds, capacity, options.most_steps);
  result.exact = search.run();
  for (size_t k = 0; k < kinds.size(); ++k) {
    const uint64_t count = search.best_count()[k];
    for (uint64_t n = 0; n < count; ++n) result.taken[kinds[k].items[n]] = 1;
    result.bytes += count * kinds[k].bytes;
    result.value += static_cast<double>(count) * kinds[k].value;
  }
  result.value += free_value;
  result.upper_bound = result.exact ? result.value : std::max(result.value, free_value + search.upper_bound());
  return result;
}

}  // namespace ridge
