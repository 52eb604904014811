// A queue of blocks with sizes and a mark each, found by block: what most policies are made of. Not for other folders.
//
//   Queue queue;
//   queue.push_front({.object = 7, .size = 4096});
//   Queue::Entry* e = queue.find(7);
//   ObjectId oldest = queue.back().object;
#pragma once

#include <iterator>
#include <list>
#include <unordered_map>

#include "sim/policy.h"

namespace ridge::sim {

class Queue {
 public:
  struct Entry {
    ObjectId object = 0;
    uint64_t size = 0;
    uint32_t mark = 0;  // visited, or how often
  };
  using Place = std::list<Entry>::iterator;

  bool empty() const { return entries_.empty(); }
  uint64_t size() const { return size_; }  // sum
  Entry& back() { return entries_.back(); }
  Entry* find(ObjectId object) {
    auto found = places_.find(object);
    return found == places_.end() ? nullptr : &*found->second;
  }
  void push_front(const Entry& entry) {
    entries_.push_front(entry);
    places_[entry.object] = entries_.begin();
    size_ += entry.size;
  }
  void move_to_front(ObjectId object) { entries_.splice(entries_.begin(), entries_, places_.at(object)); }
  Entry remove(ObjectId object) {
    auto found = places_.find(object);
    Entry entry = *found->second;
    size_ -= entry.size;
    entries_.erase(found->second);
    places_.erase(found);
    return entry;
  }
  Entry pop_back() { return remove(entries_.back().object); }
  Place end() { return entries_.end(); }
  Place last() { return std::prev(entries_.end()); }
  Place first() { return entries_.begin(); }

 private:
  std::list<Entry> entries_;  // newest first
  std::unordered_map<ObjectId, Place> places_;
  uint64_t size_ = 0;
};

}  // namespace ridge::sim
