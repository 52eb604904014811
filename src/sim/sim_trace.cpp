#include "sim/sim_trace.h"

#include <algorithm>
#include <map>
#include <vector>

namespace ridge::sim {
namespace {

TraceClock::time_point at(double seconds) {
  return TraceClock::time_point(
      std::chrono::duration_cast<TraceClock::duration>(std::chrono::duration<double>(seconds)));
}

// An operation, the standing still of the compute lane before it, and the going of its block.
void add_operation(const Op& op, const OpTime& time, double& computed_until, std::vector<TraceEvent>& events) {
  if (op.lane == Lane::compute) {
    if (time.begin > computed_until) {
      events.push_back({.lane = Lane::wait, .block = op.block, .begin = at(computed_until), .end = at(time.begin)});
    }
    computed_until = time.end;
  }
  const bool goes = op.lane == Lane::release;
  if (goes || time.end > time.begin) {
    events.push_back({.lane = op.lane,
                      .block = op.name == nullptr ? op.block : kNoBlock,
                      .begin = at(time.begin),
                      .end = at(time.end),
                      .bytes = op.bytes,
                      .name = op.name});
  }
  if (!goes && (op.give.slots > 0 || op.give.demand_slots > 0 || op.give.bytes > 0)) {
    events.push_back({.lane = Lane::release, .block = op.block, .begin = at(time.end), .end = at(time.end)});
  }
}

void add_memory(const EventSim& sim, const SimResult& result, uint64_t base, std::vector<TraceEvent>& events) {
  std::map<double, int64_t> changes;  // by time; what is taken and given at once cancels out
  for (OpId id = 0; id < sim.size(); ++id) {
    const Op& op = sim.op(id);
    if (op.take.bytes > 0) changes[result.times[id].begin] += static_cast<int64_t>(op.take.bytes);
    if (op.give.bytes > 0) changes[result.times[id].end] -= static_cast<int64_t>(op.give.bytes);
  }
  int64_t bytes = static_cast<int64_t>(base);
  for (const auto& [time, change] : changes) {
    bytes += change;
    events.push_back({.lane = Lane::memory,
                      .block = kNoBlock,
                      .begin = at(time),
                      .end = at(time),
                      .bytes = static_cast<uint64_t>(std::max<int64_t>(0, bytes))});
  }
}

}  // namespace

void write_trace(const EventSim& sim, const SimResult& result, const SimPasses& passes, Trace& trace) {
  std::vector<TraceEvent> events;
  double computed_until = 0;
  for (OpId id = 0; id < sim.size(); ++id) add_operation(sim.op(id), result.times[id], computed_until, events);
  add_memory(sim, result, passes.base_bytes, events);
  double begin = 0;
  for (double end : passes.ends) {
    events.push_back({.lane = Lane::pass,
                      .block = kNoBlock,
                      .begin = at(begin),
                      .end = at(end),
                      .tokens = passes.tokens,
                      .name = passes.name});
    begin = end;
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const TraceEvent& a, const TraceEvent& b) { return a.end < b.end; });
  for (const TraceEvent& e : events) trace.add(e);
}

}  // namespace ridge::sim
