#include "sim/host_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/check.h"
#include "base/units.h"
#include "sim/chosen_visits.h"

namespace ridge::sim {
namespace {

// Direct points that say something about one request: larger ones are cut by the kernel and limited by other things.
constexpr uint64_t kSmallestFitted = 16 * kKiB, kLargestFitted = kMiB;

std::vector<StoragePoint> fitted_points(const MachineProfile& profile, bool direct) {
  std::vector<StoragePoint> out;
  for (const StoragePoint& p : profile.storage) {
    if (p.direct == direct && p.request_bytes >= kSmallestFitted && p.request_bytes <= kLargestFitted) out.push_back(p);
  }
  return out;
}

double seconds_of(const StoragePoint& p) { return static_cast<double>(p.request_bytes) / (p.gb_per_s.value * 1e9); }

}  // namespace

Result<StorageQueue> storage_queue(const MachineProfile& profile, const HostConstants& constants) {
  std::vector<StoragePoint> points = fitted_points(profile, true);
  if (points.empty()) points = fitted_points(profile, false);
  int deepest = 0;
  for (const StoragePoint& p : points) deepest = std::max(deepest, p.depth);
  // Seconds per request over its bytes, each point by its own size: a line through small and large ones alike.
  double w = 0, wx = 0, wy = 0, wxx = 0, wxy = 0;
  size_t count = 0;
  for (const StoragePoint& p : points) {
    if (p.depth != deepest) continue;
    const double x = static_cast<double>(p.request_bytes), y = seconds_of(p), weight = 1 / (y * y);
    ++count;
    w += weight;
    wx += weight * x;
    wy += weight * y;
    wxx += weight * x * x;
    wxy += weight * x * y;
  }
  const double determinant = w * wxx - wx * wx;
  if (count < 2 || determinant <= 0) {
    return bad_input(
        fmt::format("{}: the profile has fewer than two storage figures between 16 KiB and 1 MiB: run "
                    "`ridge probe` without --no-storage",
                    profile.name));
  }
  StorageQueue queue{.request_bytes = constants.request_bytes, .depth = constants.depth};
  const double slope = (w * wxy - wx * wy) / determinant;
  if (slope <= 0) {
    return bad_input(fmt::format("{}: larger requests are not slower in this profile: measure again with `ridge probe`",
                                 profile.name));
  }
  queue.request_s = std::max(0.0, (wy - slope * wx) / w);
  queue.bytes_per_s = 1 / slope;
  // No device is quite a line: at the size of the engine's own requests it is what was measured.
  for (const StoragePoint& p : points) {
    if (p.depth != deepest || p.request_bytes != constants.request_bytes) continue;
    const double transfer = seconds_of(p) - queue.request_s;
    if (transfer > 0) queue.bytes_per_s = static_cast<double>(p.request_bytes) / transfer;
  }
  std::vector<double> latencies;
  for (const StoragePoint& p : points) {
    const double served = queue.request_s + static_cast<double>(p.request_bytes) / queue.bytes_per_s;
    if (p.depth == 1) latencies.push_back(std::max(0.0, seconds_of(p) - served));
  }
  std::sort(latencies.begin(), latencies.end());
  if (!latencies.empty()) queue.latency_s = latencies[latencies.size() / 2];
  return queue;
}

Result<HostMachine> host_machine(const MachineProfile& profile, const HostOptions& options) {
  const HostConstants& c = options.constants;
  const auto read = profile.read_gb_per_s(options.footprint_bytes, options.threads);
  if (!read) {
    return bad_input(fmt::format("{}: the profile has no memory figures: run `ridge probe`", profile.name));
  }
  HostMachine host;
  host.storage = RIDGE_TRY(storage_queue(profile, c));
  const double roof = *read * 1e9;
  host.panel_bytes_per_s = roof * (options.threads == 1 ? c.kernel_share_one : c.kernel_share_more);
  host.row_bytes_per_s = std::min(host.panel_bytes_per_s, c.rows_per_thread * options.threads);
  host.other_bytes_per_s = roof;
  host.visit_s = c.visit_s;
  host.streamed_visit_s = c.streamed_visit_s;
  host.pass_s = c.pass_s;
  return host;
}

namespace {

class Builder {
 public:
  Builder(const Program& program, const Placement& placement, const HostMachine& host, const HostRunOptions& options)
      : program_(program),
        placement_(placement),
        host_(host),
        options_(options),
        random_(options.seed),
        sim_({.slots = std::max<uint32_t>(1, placement.slots),
              .storage = host.storage,
              .demand_slots = std::max<uint32_t>(1, placement.expert_slots)}) {}

  HostRun build();

 private:
  void visit(BlockId block, const Outcome& outcome);
  double compute_s(BlockId block, bool panels) const;
  uint32_t requests_of(BlockId block) const;
  AccessTrace trace_of_passes();
  double other_s(double visits) const;
  void walk(const AccessTrace& trace, HostRun& run);
  void measure(HostRun& run) const;
  // By then what is kept has been loaded.
  uint32_t first_counted() const { return options_.passes / 2; }

  const Program& program_;
  const Placement& placement_;
  const HostMachine& host_;
  const HostRunOptions& options_;
  Random random_;
  EventSim sim_;
  std::vector<uint32_t> slices_;  // of each block: linear steps that read it
  double other_s_ = 0;            // of a visit: what is not weights, spread evenly
  bool reads_ahead_ = true;
  std::optional<OpId> last_;    // the last computation
  std::optional<OpId> router_;  // what the experts of the current layer were chosen by
  bool in_experts_ = false;
  std::vector<OpId> last_of_pass_;  // computations
};

// Requests of one block, as the engine cuts them: each piece, its aligned range, at most request_bytes.
uint32_t Builder::requests_of(BlockId block) const {
  uint64_t requests = 0;
  for (const Piece& p : program_.blocks[block].pieces) {
    const StoredTensor& t = program_.tensors[p.tensor];
    const uint64_t span = read_span(t.stored_offset(p.row_begin), t.stored_bytes(p.row_begin, p.row_end));
    requests += (span + host_.storage.request_bytes - 1) / host_.storage.request_bytes;
  }
  return static_cast<uint32_t>(requests);
}

double Builder::compute_s(BlockId block, bool panels) const {
  const Block& b = program_.blocks[block];
  double as_panels = static_cast<double>(b.memory_bytes), as_rows = 0;
  if (!panels) {
    for (const Piece& p : b.pieces) {
      const StoredTensor& t = program_.tensors[p.tensor];
      if (t.layout != Layout::rows) continue;
      const double stored = static_cast<double>(t.stored_bytes(p.row_begin, p.row_end));
      as_rows += stored;
    }
    if (as_rows > 0) as_panels *= 1 - as_rows / static_cast<double>(std::max<uint64_t>(1, b.storage_bytes));
  }
  return std::max(0.0, as_panels) / host_.panel_bytes_per_s + as_rows / host_.row_bytes_per_s +
         host_.visit_s * std::max(1u, slices_[block]) + other_s_;
}

void Builder::visit(BlockId block, const Outcome& outcome) {
  const Block& b = program_.blocks[block];
  const bool demand = b.on_demand;
  if (demand && !in_experts_) router_ = last_;
  in_experts_ = demand;
  for (ObjectId victim : outcome.left) {
    const OpId gone = sim_.add({.lane = Lane::release, .block = static_cast<BlockId>(victim)});
    if (last_) sim_.after(gone, *last_);
  }
  std::optional<OpId> read;
  const bool slot = !outcome.hit && !outcome.kept;
  if (!outcome.hit) {
    read = sim_.add({.lane = Lane::read,
                     .block = block,
                     .bytes = b.storage_bytes,
                     .from_storage = true,
                     .requests = requests_of(block),
                     .take = {.slots = slot && !demand ? 1u : 0u, .demand_slots = slot && demand ? 1u : 0u}});
    if (demand && router_) sim_.after(*read, *router_);
    if (!reads_ahead_ && last_) sim_.after(*read, *last_);
  }
  const double seconds = compute_s(block, outcome.hit) + (read ? host_.streamed_visit_s : 0);
  const OpId compute =
      sim_.add({.lane = Lane::compute,
                .block = block,
                .seconds = seconds,
                .give = {.slots = slot && !demand ? 1u : 0u, .demand_slots = slot && demand ? 1u : 0u}});
  if (read) sim_.after(compute, *read);
  if (last_) sim_.after(compute, *last_);
  last_ = compute;
}

AccessTrace Builder::trace_of_passes() {
  AccessTrace trace;
  for (uint32_t pass = 0; pass < options_.passes; ++pass) {
    trace.begin_pass();
    for (uint32_t v : chosen_visits(program_, random_)) {
      const BlockId b = program_.visits[v].block;
      trace.add(b, std::max<uint64_t>(1, program_.blocks[b].memory_bytes));
    }
  }
  trace.link();
  return trace;
}

// What is not weights, spread evenly over the visits of a pass.
double Builder::other_s(double visits) const {
  Cost other = program_.other;
  for (const Visit& v : program_.visits) {
    other.kv_bytes += v.cost.kv_bytes;
    other.activation_bytes += v.cost.activation_bytes;
  }
  const double bytes = static_cast<double>(other.kv_bytes + other.activation_bytes);
  return (bytes / host_.other_bytes_per_s + host_.pass_s) / visits;
}

void Builder::walk(const AccessTrace& trace, HostRun& run) {
  std::unique_ptr<Policy> policy;
  if (!options_.policy.empty()) {
    const PolicyInfo* info = find_policy(options_.policy);
    RIDGE_CHECK(info != nullptr, "policies are looked up before");
    reads_ahead_ = info->reads_ahead;
    policy = info->make({.capacity = options_.capacity, .trace = &trace, .seed = options_.seed});
  }
  double hit_bytes = 0;
  uint32_t pass = 0;
  for (size_t i = 0; i < trace.accesses.size(); ++i) {
    if (pass + 1 < trace.pass_begins.size() && trace.pass_begins[pass + 1] == i) {
      last_of_pass_.push_back(*last_);
      ++pass;
    }
    const Access& access = trace.accesses[i];
    const BlockId block = static_cast<BlockId>(access.object);
    const bool pinned = placement_.pinned[block] != 0;
    const Outcome outcome = policy ? policy->access(access) : Outcome{.hit = pinned, .kept = pinned};
    visit(block, outcome);
    if (pass < first_counted()) continue;
    run.visited_bytes += static_cast<double>(access.size);
    if (outcome.hit) hit_bytes += static_cast<double>(access.size);
    if (!outcome.hit) run.read_bytes += static_cast<double>(program_.blocks[block].storage_bytes);
  }
  last_of_pass_.push_back(*last_);
  if (run.visited_bytes > 0) run.hit_ratio = hit_bytes / run.visited_bytes;
}

// Means over the passes that count.
void Builder::measure(HostRun& run) const {
  for (OpId op : last_of_pass_) run.pass_ends.push_back(run.result.times[op].end);
  const double counted = options_.passes - first_counted();
  const OpId first_op = last_of_pass_[first_counted() - 1] + 1;
  run.pass_s = (run.pass_ends.back() - run.pass_ends[first_counted() - 1]) / counted;
  double computed = 0;
  for (OpId op = first_op; op < run.sim.size(); ++op) {
    if (run.sim.op(op).lane == Lane::compute) computed += run.sim.op(op).seconds;
  }
  run.waited_s = std::max(0.0, run.pass_s - computed / counted);
  run.read_bytes /= counted;
  run.visited_bytes /= counted;
}

HostRun Builder::build() {
  slices_.assign(program_.blocks.size(), 0);
  for (const auto& step : program_.steps) {
    for (const Slice& s : step) ++slices_[s.block];
  }
  const AccessTrace trace = trace_of_passes();
  other_s_ = other_s(static_cast<double>(trace.accesses.size()) / options_.passes);
  HostRun run{.sim = EventSim({}), .result = {}};
  walk(trace, run);
  run.sim = std::move(sim_);
  run.result = run.sim.run();
  measure(run);
  return run;
}

}  // namespace

HostRun run_host(const Program& program, const Placement& placement, const HostMachine& host,
                 const HostRunOptions& options) {
  RIDGE_CHECK(options.passes > 1 && !program.visits.empty(), "some passes over some blocks");
  return Builder(program, placement, host, options).build();
}

}  // namespace ridge::sim
