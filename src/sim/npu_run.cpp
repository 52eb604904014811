#include "sim/npu_run.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/check.h"
#include "base/units.h"
#include "sim/npu_pipeline.h"
#include "sim/policy.h"

namespace ridge::sim {
namespace {

// Objects cut into pieces that are kept or not: a sixty-fourth of the room leaves little of it unused; larger where a
// replay would have more pieces than this.
constexpr double kMostPieces = 1 << 22;
constexpr uint64_t kPiecesOfRoom = 64;
constexpr uint64_t kLargestPiece = 64 * kKiB;
constexpr double kActivationBytes = 1;  // of the operand that meets a weight: int8

uint64_t grain_of(const NpuWork& work, const NpuMachine& machine, uint64_t room) {
  double visited = 0;
  for (const NpuVisit& v : work.visits) visited += static_cast<double>(work.objects[v.object].bytes);
  const uint64_t wanted = std::min(room / kPiecesOfRoom, kLargestPiece);
  return round_up(std::max({wanted, static_cast<uint64_t>(visited / kMostPieces), uint64_t{1}}),
                  machine.dram.burst_bytes);
}

// The pieces of all objects: those of object o are numbered from first[o] on.
struct Pieces {
  uint64_t grain = 1;
  std::vector<uint64_t> first;

  Pieces(const NpuWork& work, uint64_t grain_bytes) : grain(grain_bytes) {
    uint64_t count = 0;
    for (const NpuObject& o : work.objects) {
      first.push_back(count);
      count += (o.bytes + grain - 1) / grain;
    }
    first.push_back(count);
  }
  uint64_t count() const { return first.back(); }
  uint64_t bytes(const NpuWork& work, uint32_t object, uint64_t piece) const {
    return std::min(grain, work.objects[object].bytes - (piece - first[object]) * grain);
  }
};

// What is in SRAM, and in which. The inner one fills first.
class Residence {
 public:
  Residence(const NpuMachine& machine, uint64_t pieces)
      : inner_free_(machine.inner_room()), inner_(pieces, 0), outer_(pieces, 0) {}

  void enter(uint64_t piece, uint64_t bytes) {
    inner_[piece] = std::min(bytes, inner_free_);
    inner_free_ -= inner_[piece];
    outer_[piece] = bytes - inner_[piece];
  }
  void leave(uint64_t piece) {
    inner_free_ += inner_[piece];
    inner_[piece] = outer_[piece] = 0;
  }
  uint64_t inner(uint64_t piece) const { return inner_[piece]; }
  uint64_t outer(uint64_t piece) const { return outer_[piece]; }

 private:
  uint64_t inner_free_;
  std::vector<uint64_t> inner_, outer_;  // bytes, by piece
};

// Bytes of one visit, by where they were found; DRAM's in whole bursts and rows of contiguous runs.
struct Moved {
  uint64_t inner = 0, outer = 0, dram = 0, dram_moved = 0, rows = 0;
  uint64_t kept_outer = 0;  // of those from DRAM, written to the outer SRAM as well
  uint64_t run = 0;         // contiguous bytes from DRAM that are still being collected

  void miss(uint64_t bytes) { run += bytes; }
  void close(const Tier& from) {
    dram += run;
    dram_moved += from.moved(run);
    rows += from.rows(run);
    run = 0;
  }
};

class Runner {
 public:
  // `room`: bytes of SRAM that may keep something.
  Runner(const NpuWork& work, const NpuMachine& machine, const NpuOptions& options, uint64_t room)
      : work_(work),
        machine_(machine),
        options_(options),
        room_(room),
        pieces_(work, grain_of(work, machine, room_)),
        residence_(machine, pieces_.count()),
        pipeline_(machine) {}

  NpuRun run();

 private:
  AccessTrace trace() const;
  std::vector<double> worth() const;
  Moved move(const NpuVisit& visit, size_t& next_access);
  void spend(const NpuVisit& visit, const Moved& moved, bool counted);
  void count(const NpuVisit& visit, const Moved& moved, const NpuBusy& busy);
  void average(double passes);
  void keep(uint32_t object, uint64_t offset, uint64_t inner, uint64_t outer);

  const NpuWork& work_;
  const NpuMachine& machine_;
  const NpuOptions& options_;
  const uint64_t room_;
  const Pieces pieces_;
  Residence residence_;
  NpuPipeline pipeline_;
  AccessTrace trace_;
  std::unique_ptr<Policy> policy_;
  NpuRun run_;
};

AccessTrace Runner::trace() const {
  AccessTrace trace;
  for (size_t pass = 0; pass < work_.pass_begins.size(); ++pass) {
    trace.begin_pass();
    for (size_t v = work_.pass_begins[pass]; v < work_.pass_end(pass); ++v) {
      const uint32_t object = work_.visits[v].object;
      if (work_.objects[object].kind == NpuObjectKind::rows) continue;
      for (uint64_t p = pieces_.first[object]; p < pieces_.first[object + 1]; ++p) {
        trace.add(p, pieces_.bytes(work_, object, p));
      }
    }
  }
  trace.link();
  return trace;
}

// What a hit saves, by piece: the bus of DRAM, or what reading there and writing to the buffers takes.
std::vector<double> Runner::worth() const {
  const Tier& dram = machine_.dram;
  std::vector<double> worth;
  for (uint32_t object = 0; object < work_.objects.size(); ++object) {
    for (uint64_t p = pieces_.first[object]; p < pieces_.first[object + 1]; ++p) {
      const uint64_t bytes = pieces_.bytes(work_, object, p);
      const double moved = static_cast<double>(dram.moved(bytes)), rows = static_cast<double>(dram.rows(bytes));
      const double joules = moved * dram.read_j_per_byte + rows * dram.activate_j +
                            static_cast<double>(bytes) * machine_.inner().write_j_per_byte;
      const double seconds = moved / dram.read_bytes_per_s + rows * dram.row_s;
      worth.push_back(options_.worth == NpuWorth::energy ? joules : seconds);
    }
  }
  return worth;
}

Moved Runner::move(const NpuVisit& visit, size_t& next_access) {
  Moved moved;
  const uint32_t object = visit.object;
  if (work_.objects[object].kind == NpuObjectKind::rows) {
    moved.miss(work_.objects[object].bytes);
    moved.close(machine_.dram);
    return moved;
  }
  for (uint64_t p = pieces_.first[object]; p < pieces_.first[object + 1]; ++p) {
    const Access& access = trace_.accesses[next_access++];
    const uint64_t inner = residence_.inner(p), outer = residence_.outer(p);
    const Outcome outcome = policy_->access(access);
    for (ObjectId gone : outcome.left) residence_.leave(gone);
    if (outcome.hit) {
      moved.inner += inner;
      moved.outer += outer;
      moved.close(machine_.dram);
      continue;
    }
    moved.miss(access.size);
    if (!outcome.kept) continue;
    residence_.enter(p, access.size);
    moved.kept_outer += residence_.outer(p);
  }
  moved.close(machine_.dram);
  return moved;
}

void Runner::spend(const NpuVisit& visit, const Moved& m, bool counted) {
  const Tier& inner = machine_.inner();
  const double dram_moved = static_cast<double>(m.dram_moved), outer = static_cast<double>(m.outer);
  const double operands = static_cast<double>(m.inner + m.outer + m.dram + visit.activation_bytes);
  NpuBusy busy;
  busy.macs = (visit.macs / machine_.macs_per_s + visit.float_macs / machine_.float_macs_per_s) / machine_.utilisation;
  busy.inner_sram = operands / inner.read_bytes_per_s;
  busy.dram = std::max(dram_moved / machine_.dram.read_bytes_per_s + static_cast<double>(m.rows) * machine_.dram.row_s,
                       dram_moved / inner.write_bytes_per_s);
  if (m.outer > 0) busy.shared_sram = outer / std::min(machine_.shared->read_bytes_per_s, inner.write_bytes_per_s);
  busy.compute = std::max(busy.macs, busy.inner_sram);
  pipeline_.visit({.compute_s = busy.compute,
                   .here_bytes = static_cast<double>(m.inner),
                   .shared = {.bytes = outer, .bus_s = busy.shared_sram},
                   .dram = {.bytes = dram_moved, .bus_s = busy.dram},
                   .on_demand = visit.on_demand,
                   .block = work_.objects[visit.object].kind == NpuObjectKind::weights});
  if (counted) count(visit, m, busy);
}

void Runner::count(const NpuVisit& visit, const Moved& m, const NpuBusy& busy) {
  const double weights = static_cast<double>(m.inner + m.outer + m.dram);
  const double outer = static_cast<double>(m.outer), dram_moved = static_cast<double>(m.dram_moved);
  if (work_.objects[visit.object].kind != NpuObjectKind::rows) {
    run_.visited_bytes += weights;
    run_.hit_bytes += static_cast<double>(m.inner + m.outer);
  }
  run_.dram_bytes += dram_moved;
  run_.row_opens += static_cast<double>(m.rows);
  run_.busy.macs += busy.macs;
  run_.busy.inner_sram += busy.inner_sram;
  run_.busy.compute += busy.compute;
  run_.busy.shared_sram += busy.shared_sram;
  run_.busy.dram += busy.dram;

  NpuEnergy& e = run_.energy;
  e.macs += visit.macs * machine_.mac_j + visit.float_macs * machine_.float_mac_j;
  if (machine_.registers) {
    const double activations = (visit.macs + visit.float_macs) * kActivationBytes;
    e.registers +=
        weights * machine_.registers->write_j_per_byte + (weights + activations) * machine_.registers->read_j_per_byte;
  }
  // Activations: half of the traffic reads, half writes. All that DMA brings is written before it is read.
  const Tier& inner = machine_.inner();
  const double activations = static_cast<double>(visit.activation_bytes) / 2;
  (machine_.local ? e.local : e.shared) +=
      (weights + activations) * inner.read_j_per_byte + (outer + dram_moved + activations) * inner.write_j_per_byte;
  if (machine_.local && machine_.shared) {
    e.shared += outer * machine_.shared->read_j_per_byte +
                static_cast<double>(m.kept_outer) * machine_.shared->write_j_per_byte;
  }
  e.dram += dram_moved * machine_.dram.read_j_per_byte;
  e.rows += static_cast<double>(m.rows) * machine_.dram.activate_j;
}

void Runner::average(double passes) {
  NpuEnergy& e = run_.energy;
  NpuBusy& b = run_.busy;
  for (double* sum : {&run_.pass_s, &run_.waited_s, &run_.dram_bytes, &run_.visited_bytes, &run_.hit_bytes,
                      &run_.row_opens, &e.macs, &e.registers, &e.local, &e.shared, &e.dram, &e.rows, &b.macs,
                      &b.inner_sram, &b.compute, &b.shared_sram, &b.dram}) {
    *sum /= passes;
  }
  e.leakage = machine_.all_leakage_w() * run_.pass_s;
}

// Neighbours that lie in the same SRAM are one stretch.
void Runner::keep(uint32_t object, uint64_t offset, uint64_t inner, uint64_t outer) {
  if (inner + outer == 0) return;
  NpuKept* last = run_.kept.empty() ? nullptr : &run_.kept.back();
  const bool follows = last != nullptr && last->object == object && last->offset + last->inner + last->outer == offset;
  if (follows && (last->outer == 0 || inner == 0)) {
    last->inner += inner;
    last->outer += outer;
    return;
  }
  run_.kept.push_back({object, offset, inner, outer});
}

NpuRun Runner::run() {
  trace_ = trace();
  const PolicyInfo* info = find_policy(options_.policy);
  RIDGE_CHECK(info != nullptr && !info->reads_ahead, "policies are looked up before");
  const std::vector<double> worths = worth();
  policy_ = info->make({.capacity = room_, .trace = &trace_, .seed = options_.seed, .worth = worths});
  run_.room_bytes = room_;
  run_.grain_bytes = pieces_.grain;
  const size_t passes = work_.pass_begins.size(), first_counted = passes / 2;
  size_t next_access = 0;
  double begin = 0, waited = 0;
  for (size_t pass = 0; pass < passes; ++pass) {
    if (pass == first_counted) {
      begin = pipeline_.end();
      waited = pipeline_.waited();
    }
    for (size_t v = work_.pass_begins[pass]; v < work_.pass_end(pass); ++v) {
      spend(work_.visits[v], move(work_.visits[v], next_access), pass >= first_counted);
    }
  }
  run_.pass_s = pipeline_.end() - begin;
  run_.waited_s = pipeline_.waited() - waited;
  average(static_cast<double>(passes - first_counted));
  for (uint32_t object = 0; object < work_.objects.size(); ++object) {
    NpuHome home{.dram = work_.objects[object].bytes};
    for (uint64_t p = pieces_.first[object]; p < pieces_.first[object + 1]; ++p) {
      (machine_.local ? home.local : home.shared) += residence_.inner(p);
      if (machine_.local) home.shared += residence_.outer(p);
      keep(object, (p - pieces_.first[object]) * pieces_.grain, residence_.inner(p), residence_.outer(p));
    }
    home.dram -= home.local + home.shared;
    run_.homes.push_back(home);
  }
  return std::move(run_);
}

}  // namespace

double NpuRun::bound_s() const { return std::max({busy.compute, busy.shared_sram, busy.dram}); }

std::string_view NpuRun::bound() const {
  constexpr double kLonger = 1.05;
  const double most = bound_s();
  if (pass_s > kLonger * most) return "waiting";
  if (most == busy.dram) return "DRAM bandwidth";
  if (most == busy.shared_sram) return "shared SRAM bandwidth";
  return busy.macs >= busy.inner_sram ? "MACs" : "inner SRAM bandwidth";
}

NpuRun run_npu(const NpuWork& work, const NpuMachine& machine, const NpuOptions& options) {
  RIDGE_CHECK(work.pass_begins.size() > 1 && !work.visits.empty(), "passes over something");
  NpuRun all = Runner(work, machine, options, machine.room()).run();
  if (options.worth == NpuWorth::energy || machine.outer_room() == 0) return all;
  NpuRun inner = Runner(work, machine, options, machine.inner_room()).run();
  return inner.pass_s < all.pass_s ? std::move(inner) : std::move(all);
}

}  // namespace ridge::sim
