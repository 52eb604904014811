#include "sim/event_sim.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <queue>
#include <set>

#include "base/check.h"

namespace ridge::sim {
namespace {

// Completion times of requests, one after the other: the device answers in order, `depth` of them overlap.
class Storage {
 public:
  explicit Storage(const StorageQueue& queue) : queue_(queue) {}

  // Submits all requests of a read at `now`; when the last one is over.
  double read(double now, uint64_t bytes, uint32_t requests) {
    if (requests == 0) {
      const uint64_t size = std::max<uint64_t>(queue_.request_bytes, 1);
      for (uint64_t at = 0; at < bytes; at += size) request(now, static_cast<double>(std::min(size, bytes - at)));
      return last_;
    }
    for (uint32_t i = 0; i < requests; ++i) request(now, static_cast<double>(bytes) / requests);
    return last_;
  }

 private:
  void request(double now, double size) {
    double issued = now;
    if (ends_.size() == std::max<uint32_t>(queue_.depth, 1)) {
      issued = std::max(issued, ends_.front());
      ends_.pop_front();
    }
    last_ = std::max(issued + queue_.latency_s, last_) + queue_.request_s + size / queue_.bytes_per_s;
    ends_.push_back(last_);
  }

  const StorageQueue& queue_;
  std::deque<double> ends_;  // of the last `depth` requests
  double last_ = 0;
};

}  // namespace

OpId EventSim::add(const Op& op, std::initializer_list<OpId> after_these) {
  const OpId id = static_cast<OpId>(ops_.size());
  ops_.push_back(op);
  next_.emplace_back();
  waits_.push_back(0);
  for (OpId before : after_these) after(id, before);
  return id;
}

void EventSim::after(OpId op, OpId before) {
  RIDGE_CHECK(op < ops_.size() && before < ops_.size(), "operations are added before they are ordered");
  next_[before].push_back(op);
  ++waits_[op];
}

namespace {

struct State {
  explicit State(const SimLimits& limits)
      : storage(limits.storage),
        free{.slots = limits.slots, .bytes = limits.bytes, .demand_slots = limits.demand_slots} {}
  std::array<std::set<OpId>, kLanes> ready;  // in order
  std::array<bool, kLanes> busy{};
  bool driver_busy = false;
  Storage storage;
  Claim free;
  using Event = std::pair<double, OpId>;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> ends;
};

bool fits(const Claim& claim, const Claim& free) {
  return claim.slots <= free.slots && claim.bytes <= free.bytes && claim.demand_slots <= free.demand_slots;
}

}  // namespace

SimResult EventSim::run() const {
  SimResult result;
  result.times.resize(ops_.size());
  State s(limits_);
  std::vector<uint32_t> waits = waits_;
  for (OpId id = 0; id < ops_.size(); ++id) {
    if (waits[id] == 0) s.ready[static_cast<size_t>(ops_[id].lane)].insert(id);
  }
  double now = 0, read_until = 0;
  uint64_t bytes = 0;
  size_t over = 0;
  auto start = [&](OpId id) {
    const Op& op = ops_[id];
    const size_t lane = static_cast<size_t>(op.lane);
    s.free.slots -= op.take.slots;
    s.free.bytes -= op.take.bytes;
    s.free.demand_slots -= op.take.demand_slots;
    bytes += op.take.bytes;
    result.peak_bytes = std::max(result.peak_bytes, bytes);
    const double end = op.from_storage ? s.storage.read(now, op.bytes, op.requests) : now + op.seconds;
    result.times[id] = {now, end};
    result.read_bytes += op.bytes;
    if (op.from_storage) {
      result.busy[lane] += std::max(0.0, end - std::max(now, read_until));
      read_until = std::max(read_until, end);
    } else {
      result.busy[lane] += op.seconds;
      s.busy[lane] = true;
    }
    if (op.needs_driver) s.driver_busy = true;
    s.ready[lane].erase(id);
    s.ends.push({end, id});
  };
  // The first operation of each lane that may start; among lanes the one that was added first, which matters for the
  // driver and for memory.
  auto next_start = [&]() -> const OpId* {
    const OpId* best = nullptr;
    for (size_t lane = 0; lane < kLanes; ++lane) {
      if (s.busy[lane] || s.ready[lane].empty()) continue;
      const OpId& id = *s.ready[lane].begin();
      const Op& op = ops_[id];
      if (op.needs_driver && s.driver_busy) continue;
      if (!fits(op.take, s.free)) continue;
      if (best == nullptr || id < *best) best = &id;
    }
    return best;
  };
  auto finish = [&](OpId id) {
    const Op& op = ops_[id];
    ++over;
    if (!op.from_storage) s.busy[static_cast<size_t>(op.lane)] = false;
    if (op.needs_driver) s.driver_busy = false;
    s.free.slots += op.give.slots;
    s.free.bytes += op.give.bytes;
    s.free.demand_slots += op.give.demand_slots;
    bytes -= op.give.bytes;
    for (OpId next : next_[id]) {
      if (--waits[next] == 0) s.ready[static_cast<size_t>(ops_[next].lane)].insert(next);
    }
  };
  for (;;) {
    while (const OpId* id = next_start()) start(*id);
    if (s.ends.empty()) break;
    now = s.ends.top().first;
    // All that end now, before anything starts: who waits for two of them sees both.
    while (!s.ends.empty() && s.ends.top().first == now) {
      const OpId id = s.ends.top().second;
      s.ends.pop();
      finish(id);
    }
  }
  RIDGE_CHECK(over == ops_.size(), "every operation can start: what it claims is within the limits");
  result.makespan = now;
  double first = now, last = 0;
  for (OpId id = 0; id < ops_.size(); ++id) {
    if (ops_[id].lane != Lane::compute) continue;
    first = std::min(first, result.times[id].begin);
    last = std::max(last, result.times[id].end);
  }
  if (last > first) result.waited = last - first - result.busy[static_cast<size_t>(Lane::compute)];
  return result;
}

}  // namespace ridge::sim
