#include "sim/lifecycle.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/check.h"

namespace ridge::sim {
namespace {

constexpr double kBytesPerMib = 1024 * 1024;

uint64_t bytes_of(double mib) { return static_cast<uint64_t>(std::llround(std::max(0.0, mib) * kBytesPerMib)); }

class Builder {
 public:
  Builder(const ContextDevice& device, const LadderFit& fit, const LifecycleOptions& options)
      : device_(device), fit_(fit), options_(options), sim_({.slots = options.contexts}) {}

  LifecycleRun build();

 private:
  void visit(BlockId block, const Outcome& outcome);
  OpId prepare(BlockId block, bool kept, const std::vector<OpId>& after);
  OpId release(BlockId block, Claim give, std::optional<OpId> after);
  // One thread does everything, in order.
  bool synchronous() const { return options_.contexts == 1; }
  uint64_t memory(BlockId block) const { return bytes_of(fit_.context_mib(device_.contexts[block].weight_mib)); }

  const ContextDevice& device_;
  const LadderFit& fit_;
  const LifecycleOptions& options_;
  EventSim sim_;
  LifecycleRun run_{.sim = EventSim({}), .result = {}};
  std::optional<OpId> last_;               // what the next thing of the main thread comes after
  std::vector<OpId> ends_;                 // of visits, in order
  std::optional<OpId> prepared_run_;       // of the last context that was loaded for its visit
  std::unordered_map<BlockId, OpId> use_;  // the last use of a block that is kept
};

OpId Builder::prepare(BlockId block, bool kept, const std::vector<OpId>& after) {
  const Context& c = device_.contexts[block];
  const OpId load = sim_.add({.lane = Lane::read,
                              .block = block,
                              .seconds = c.load_s,
                              .bytes = bytes_of(c.weight_mib),
                              .take = {.slots = kept ? 0u : 1u, .bytes = memory(block)}});
  for (OpId before : after) sim_.after(load, before);
  if (synchronous()) {
    if (last_) sim_.after(load, *last_);
  } else if (kept && ends_.size() >= options_.contexts) {
    // What is kept takes no slot: it too is loaded no further ahead than the others.
    sim_.after(load, ends_[ends_.size() - options_.contexts]);
  }
  ++run_.lifecycles;
  run_.lifecycle_s += c.lifecycle_s();
  const bool locks = options_.lock != DriverLock::none;
  const OpId init = sim_.add({.lane = Lane::init, .block = block, .seconds = c.init_s, .needs_driver = locks}, {load});
  // Begun sooner it could hold the driver just when the context before it is to run, which then waits for all of it:
  // two images in lock-step lost 53 s to that.
  if (locks && prepared_run_) sim_.after(init, *prepared_run_);
  return init;
}

OpId Builder::release(BlockId block, Claim give, std::optional<OpId> after) {
  const OpId id = sim_.add({.lane = Lane::release,
                            .block = block,
                            .seconds = device_.contexts[block].release_s,
                            .needs_driver = options_.lock == DriverLock::init_and_release,
                            .give = give});
  if (after) sim_.after(id, *after);
  return id;
}

void Builder::visit(BlockId block, const Outcome& outcome) {
  const Context& c = device_.contexts[block];
  std::optional<OpId> ready;
  if (!outcome.hit) {
    std::vector<OpId> released;
    for (ObjectId left : outcome.left) {
      const BlockId victim = static_cast<BlockId>(left);
      const OpId id = release(victim, {.bytes = memory(victim)}, use_.at(victim));
      if (synchronous() && last_) sim_.after(id, *last_);
      if (synchronous()) last_ = id;
      released.push_back(id);
      use_.erase(victim);
    }
    ready = prepare(block, outcome.kept, released);
  }
  const OpId run = sim_.add({.lane = Lane::compute,
                             .block = block,
                             .seconds = c.run_s * options_.images,
                             .needs_driver = options_.lock != DriverLock::none});
  if (ready) {
    sim_.after(run, *ready);
    prepared_run_ = run;
  }
  if (last_) sim_.after(run, *last_);
  const OpId host = sim_.add(
      {.lane = Lane::compute, .block = block, .seconds = c.host_s * options_.images, .name = "host between contexts"},
      {run});
  last_ = host;
  ends_.push_back(host);
  if (outcome.kept) {
    use_[block] = host;
    return;
  }
  // A thread of its own releases as soon as the accelerator is done; a single one first does the host's work.
  const OpId gone = release(block, {.slots = 1, .bytes = memory(block)}, synchronous() ? host : run);
  if (synchronous()) last_ = gone;
}

LifecycleRun Builder::build() {
  const bool by_memory = options_.pinned_mib > 0;
  std::vector<uint64_t> sizes;
  std::vector<double> worth;
  for (BlockId b = 0; b < device_.contexts.size(); ++b) {
    sizes.push_back(by_memory ? memory(b) : 1);
    worth.push_back(device_.contexts[b].lifecycle_s());
  }
  const AccessTrace trace = cyclic_trace(sizes, options_.passes);
  const PolicyInfo* info = find_policy(options_.policy);
  RIDGE_CHECK(info != nullptr, "policies are looked up before");
  RIDGE_CHECK(synchronous() || info->foresight == Foresight::order_known || options_.policy == "none",
              "only what a policy foresees can be read ahead");
  // Where capacity counts contexts, seconds for a MiB still decide: a dear context is worth its memory.
  if (!by_memory) {
    for (BlockId b = 0; b < worth.size(); ++b) worth[b] /= std::max(1e-9, device_.contexts[b].weight_mib);
  }
  auto policy = info->make(
      {.capacity = by_memory ? bytes_of(options_.pinned_mib) : options_.pinned, .trace = &trace, .worth = worth});
  for (const Access& access : trace.accesses) {
    const Outcome outcome = policy->access(access);
    ++run_.calls;
    run_.hits += outcome.hit;
    visit(static_cast<BlockId>(access.object), outcome);
  }
  // What is still here goes in the end, one after the other.
  std::vector<BlockId> kept;
  for (const auto& [block, op] : use_) kept.push_back(block);
  std::sort(kept.begin(), kept.end());
  for (BlockId block : kept) last_ = release(block, {.bytes = memory(block)}, last_);
  run_.sim = std::move(sim_);
  run_.result = run_.sim.run();
  run_.passes_s = run_.result.makespan;
  for (size_t i = device_.contexts.size(); i <= ends_.size(); i += device_.contexts.size()) {
    run_.pass_ends.push_back(run_.result.times[ends_[i - 1]].end);
  }
  run_.peak_mib = fit_.base_mib + static_cast<double>(run_.result.peak_bytes) / kBytesPerMib;
  run_.images = options_.images;
  return std::move(run_);
}

}  // namespace

LifecycleRun run_lifecycle(const ContextDevice& device, const LadderFit& fit, const LifecycleOptions& options) {
  RIDGE_CHECK(options.passes > 0 && options.contexts > 0 && options.images > 0,
              "a run has passes, contexts and images");
  return Builder(device, fit, options).build();
}

std::vector<std::pair<std::string, double>> pass_bounds(const ContextDevice& device, DriverLock lock) {
  double load = 0, init = 0, release = 0;
  for (const Context& c : device.contexts) {
    load += c.load_s;
    init += c.init_s;
    release += c.release_s;
  }
  const double run = device.pass_run_s();
  std::vector<std::pair<std::string, double>> bounds = {
      {"execution and host", run + device.pass_host_s()}, {"loading", load}, {"init", init}, {"release", release}};
  if (lock == DriverLock::init) bounds.emplace_back("the driver: run and init", run + init);
  if (lock == DriverLock::init_and_release) {
    bounds.emplace_back("the driver: run, init and release", run + init + release);
  }
  return bounds;
}

double pass_bound_s(const ContextDevice& device, DriverLock lock) {
  double most = 0;
  for (const auto& [name, seconds] : pass_bounds(device, lock)) most = std::max(most, seconds);
  return most;
}

}  // namespace ridge::sim
