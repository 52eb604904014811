// Policies that know when a block was used, or came: FIFO, LRU, CLOCK (Corbató 1968), SIEVE (Zhang and others, NSDI
// 2024), segmented LRU (Karedla and others, 1994). On a cyclic order all of them evict a block just before its next
// use.
#include "sim/policy_queue.h"

namespace ridge::sim {
namespace {

class None final : public Policy {
 public:
  Outcome access(const Access&) override { return {}; }
};

// One queue; subclasses say what a hit does and who goes.
class OneQueue : public Policy {
 public:
  explicit OneQueue(uint64_t capacity) : capacity_(capacity) {}

  Outcome access(const Access& a) override {
    if (Queue::Entry* entry = queue_.find(a.object)) {
      on_hit(*entry);
      return {.hit = true, .kept = true};
    }
    Outcome out;
    if (a.size > capacity_) return out;
    while (queue_.size() + a.size > capacity_) out.left.push_back(evict());
    queue_.push_front({.object = a.object, .size = a.size});
    out.kept = true;
    return out;
  }

 protected:
  virtual void on_hit(Queue::Entry& entry) = 0;
  virtual ObjectId evict() { return queue_.pop_back().object; }
  Queue queue_;

 private:
  uint64_t capacity_;
};

class Fifo final : public OneQueue {
 public:
  using OneQueue::OneQueue;
  void on_hit(Queue::Entry&) override {}
};

class Lru final : public OneQueue {
 public:
  using OneQueue::OneQueue;
  void on_hit(Queue::Entry& entry) override { queue_.move_to_front(entry.object); }
};

class Clock final : public OneQueue {
 public:
  using OneQueue::OneQueue;
  void on_hit(Queue::Entry& entry) override { entry.mark = 1; }
  ObjectId evict() override {
    while (queue_.back().mark > 0) {
      queue_.back().mark = 0;
      queue_.move_to_front(queue_.back().object);
    }
    return queue_.pop_back().object;
  }
};

// As CLOCK, but what is spared stays where it is: the hand walks from old to new, newcomers stand before it.
class Sieve final : public OneQueue {
 public:
  using OneQueue::OneQueue;
  void on_hit(Queue::Entry& entry) override { entry.mark = 1; }
  ObjectId evict() override {
    Queue::Place hand = at_hand_ ? hand_ : queue_.last();
    while (hand->mark > 0) {
      hand->mark = 0;
      hand = hand == queue_.first() ? queue_.last() : std::prev(hand);
    }
    const ObjectId object = hand->object;
    at_hand_ = hand != queue_.first();
    if (at_hand_) hand_ = std::prev(hand);
    queue_.remove(object);
    return object;
  }

 private:
  Queue::Place hand_;
  bool at_hand_ = false;
};

// Four fifths are for blocks that were used again while they were here.
class Slru final : public Policy {
 public:
  explicit Slru(uint64_t capacity) : capacity_(capacity), most_protected_(capacity / 5 * 4 + capacity % 5 * 4 / 5) {}

  Outcome access(const Access& a) override {
    if (protected_.find(a.object)) {
      protected_.move_to_front(a.object);
      return {.hit = true, .kept = true};
    }
    if (probation_.find(a.object)) {
      protected_.push_front(probation_.remove(a.object));
      while (protected_.size() > most_protected_) probation_.push_front(protected_.pop_back());
      return {.hit = true, .kept = true};
    }
    Outcome out;
    if (a.size > capacity_) return out;
    while (probation_.size() + protected_.size() + a.size > capacity_) {
      out.left.push_back((probation_.empty() ? protected_ : probation_).pop_back().object);
    }
    probation_.push_front({.object = a.object, .size = a.size});
    out.kept = true;
    return out;
  }

 private:
  uint64_t capacity_, most_protected_;
  Queue probation_, protected_;
};

}  // namespace

std::unique_ptr<Policy> make_none(const PolicySetup&) { return std::make_unique<None>(); }
std::unique_ptr<Policy> make_fifo(const PolicySetup& s) { return std::make_unique<Fifo>(s.capacity); }
std::unique_ptr<Policy> make_lru(const PolicySetup& s) { return std::make_unique<Lru>(s.capacity); }
std::unique_ptr<Policy> make_clock(const PolicySetup& s) { return std::make_unique<Clock>(s.capacity); }
std::unique_ptr<Policy> make_sieve(const PolicySetup& s) { return std::make_unique<Sieve>(s.capacity); }
std::unique_ptr<Policy> make_slru(const PolicySetup& s) { return std::make_unique<Slru>(s.capacity); }

}  // namespace ridge::sim
