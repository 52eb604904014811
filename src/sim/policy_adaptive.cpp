// Policies that count uses or remember what left: LFU, ARC (Megiddo and Modha, FAST 2003), S3-FIFO (Yang and others,
// SOSP 2023), and a random one.
#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "sim/policy_queue.h"
#include "sim/random.h"

namespace ridge::sim {
namespace {

// Counts while a block is here; among equals the one used longest ago goes.
class Lfu final : public Policy {
 public:
  explicit Lfu(uint64_t capacity) : capacity_(capacity) {}

  Outcome access(const Access& a) override {
    ++now_;
    if (auto found = entries_.find(a.object); found != entries_.end()) {
      Entry& e = found->second;
      order_.erase({e.uses, e.used, a.object});
      ++e.uses;
      e.used = now_;
      order_.insert({e.uses, e.used, a.object});
      return {.hit = true, .kept = true};
    }
    Outcome out;
    if (a.size > capacity_) return out;
    while (size_ + a.size > capacity_) {
      const ObjectId victim = std::get<2>(*order_.begin());
      order_.erase(order_.begin());
      size_ -= entries_.at(victim).size;
      entries_.erase(victim);
      out.left.push_back(victim);
    }
    entries_[a.object] = {.uses = 1, .used = now_, .size = a.size};
    order_.insert({1, now_, a.object});
    size_ += a.size;
    out.kept = true;
    return out;
  }

 private:
  struct Entry {
    uint64_t uses = 0, used = 0, size = 0;
  };
  uint64_t capacity_, size_ = 0, now_ = 0;
  std::unordered_map<ObjectId, Entry> entries_;
  std::set<std::tuple<uint64_t, uint64_t, ObjectId>> order_;
};

// T1 seen once, T2 seen again, B1 and B2 what left them; `target_` is the share of T1. Sizes instead of counts.
class Arc final : public Policy {
 public:
  explicit Arc(uint64_t capacity) : capacity_(capacity) {}

  Outcome access(const Access& a) override {
    if (t2_.find(a.object)) {
      t2_.move_to_front(a.object);
      return {.hit = true, .kept = true};
    }
    if (t1_.find(a.object)) {
      t2_.push_front(t1_.remove(a.object));
      return {.hit = true, .kept = true};
    }
    Outcome out;
    if (a.size > capacity_) return out;
    const bool in_b1 = b1_.find(a.object) != nullptr, in_b2 = b2_.find(a.object) != nullptr;
    if (in_b1) {
      target_ = std::min(capacity_, target_ + a.size * std::max<uint64_t>(1, b2_.size() / b1_.size()));
      b1_.remove(a.object);
    }
    if (in_b2) {
      const uint64_t less = a.size * std::max<uint64_t>(1, b1_.size() / b2_.size());
      target_ -= std::min(target_, less);
      b2_.remove(a.object);
    }
    while (t1_.size() + t2_.size() + a.size > capacity_) out.left.push_back(replace(in_b2));
    (in_b1 || in_b2 ? t2_ : t1_).push_front({.object = a.object, .size = a.size});
    while (!b1_.empty() && t1_.size() + b1_.size() > capacity_) b1_.pop_back();
    while (!b2_.empty() && t1_.size() + t2_.size() + b1_.size() + b2_.size() > 2 * capacity_) b2_.pop_back();
    out.kept = true;
    return out;
  }

 private:
  ObjectId replace(bool in_b2) {
    const bool from_t1 = !t1_.empty() && (t2_.empty() || t1_.size() > target_ || (in_b2 && t1_.size() == target_));
    const Queue::Entry entry = (from_t1 ? t1_ : t2_).pop_back();
    (from_t1 ? b1_ : b2_).push_front(entry);
    return entry.object;
  }
  uint64_t capacity_, target_ = 0;
  Queue t1_, t2_, b1_, b2_;
};

// A tenth for newcomers; who is used twice there moves to the main queue, the others leave and are remembered.
class S3Fifo final : public Policy {
 public:
  explicit S3Fifo(uint64_t capacity) : capacity_(capacity), small_target_(std::max<uint64_t>(1, capacity / 10)) {}

  Outcome access(const Access& a) override {
    Queue::Entry* entry = small_.find(a.object);
    if (entry == nullptr) entry = main_.find(a.object);
    if (entry != nullptr) {
      entry->mark = std::min(entry->mark + 1, kMostUses);
      return {.hit = true, .kept = true};
    }
    Outcome out;
    if (a.size > capacity_) return out;
    while (small_.size() + main_.size() + a.size > capacity_) evict(out.left);
    const bool remembered = ghost_.find(a.object) != nullptr;
    if (remembered) ghost_.remove(a.object);
    (remembered ? main_ : small_).push_front({.object = a.object, .size = a.size});
    out.kept = true;
    return out;
  }

 private:
  static constexpr uint32_t kMostUses = 3;

  void evict(std::vector<ObjectId>& left) {
    if (!small_.empty() && (main_.empty() || small_.size() >= small_target_)) return evict_small(left);
    while (main_.back().mark > 0) {
      Queue::Entry entry = main_.pop_back();
      --entry.mark;
      main_.push_front(entry);
    }
    left.push_back(main_.pop_back().object);
  }
  // Moves blocks on until one leaves, or none is left here.
  void evict_small(std::vector<ObjectId>& left) {
    while (!small_.empty()) {
      Queue::Entry entry = small_.pop_back();
      if (entry.mark > 1) {
        entry.mark = 0;
        main_.push_front(entry);
        continue;
      }
      left.push_back(entry.object);
      ghost_.push_front(entry);
      while (ghost_.size() > capacity_ - small_target_ && !ghost_.empty()) ghost_.pop_back();
      return;
    }
  }
  uint64_t capacity_, small_target_;
  Queue small_, main_, ghost_;
};

class RandomChoice final : public Policy {
 public:
  RandomChoice(uint64_t capacity, uint64_t seed) : capacity_(capacity), random_(seed) {}

  Outcome access(const Access& a) override {
    if (places_.contains(a.object)) return {.hit = true, .kept = true};
    Outcome out;
    if (a.size > capacity_) return out;
    while (size_ + a.size > capacity_) {
      const size_t at = random_.below(entries_.size());
      out.left.push_back(entries_[at].object);
      size_ -= entries_[at].size;
      places_.erase(entries_[at].object);
      entries_[at] = entries_.back();
      entries_.pop_back();
      if (at < entries_.size()) places_[entries_[at].object] = at;
    }
    places_[a.object] = entries_.size();
    entries_.push_back(a);
    size_ += a.size;
    out.kept = true;
    return out;
  }

 private:
  uint64_t capacity_, size_ = 0;
  Random random_;
  std::vector<Access> entries_;
  std::unordered_map<ObjectId, size_t> places_;
};

}  // namespace

std::unique_ptr<Policy> make_lfu(const PolicySetup& s) { return std::make_unique<Lfu>(s.capacity); }
std::unique_ptr<Policy> make_arc(const PolicySetup& s) { return std::make_unique<Arc>(s.capacity); }
std::unique_ptr<Policy> make_s3_fifo(const PolicySetup& s) { return std::make_unique<S3Fifo>(s.capacity); }
std::unique_ptr<Policy> make_random(const PolicySetup& s) { return std::make_unique<RandomChoice>(s.capacity, s.seed); }

}  // namespace ridge::sim
