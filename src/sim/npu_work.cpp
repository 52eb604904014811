#include "sim/npu_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/check.h"
#include "sim/chosen_visits.h"

namespace ridge::sim {
namespace {

constexpr double kOpsOfMac = 2;

// Expected costs are those of a visit times its chance.
NpuVisit visit_of(const Visit& v, bool on_demand) {
  const double certain = v.chance > 0 ? 1 / v.chance : 0;
  NpuVisit out{.object = v.block, .on_demand = on_demand};
  out.macs = static_cast<double>(v.cost.int_ops) * certain / kOpsOfMac;
  out.float_macs = static_cast<double>(v.cost.flops) * certain / kOpsOfMac;
  out.activation_bytes = static_cast<uint64_t>(static_cast<double>(v.cost.activation_bytes) * certain);
  return out;
}

// What a pass does beside its weights, in `shares` equal parts that add up to it.
class Others {
 public:
  Others(const Program& program, uint64_t shares) : shares_(std::max<uint64_t>(1, shares)), other_(program.other) {
    for (const Visit& v : program.visits) other_.kv_bytes += v.cost.kv_bytes;
  }
  uint64_t kv_bytes(uint64_t share) const {
    return other_.kv_bytes * (share + 1) / shares_ - other_.kv_bytes * share / shares_;
  }
  NpuVisit visit(uint32_t object) const {
    const double n = static_cast<double>(shares_);
    NpuVisit out{.object = object};
    out.macs = static_cast<double>(other_.int_ops) / kOpsOfMac / n;
    out.float_macs = static_cast<double>(other_.flops) / kOpsOfMac / n;
    out.activation_bytes = other_.activation_bytes / shares_;
    return out;
  }
  uint64_t row_bytes() const { return other_.storage_bytes; }

 private:
  uint64_t shares_;
  Cost other_;
};

}  // namespace

uint64_t NpuWork::bytes(NpuObjectKind kind) const {
  uint64_t sum = 0;
  for (const NpuObject& o : objects) sum += o.kind == kind ? o.bytes : 0;
  return sum;
}

NpuWork npu_work(const Program& program, const NpuWorkOptions& options) {
  NpuWork work;
  for (const Block& b : program.blocks) work.objects.push_back({.name = b.name, .bytes = b.storage_bytes});
  const auto certain =
      static_cast<uint64_t>(std::count_if(program.visits.begin(), program.visits.end(),
                                          [&](const Visit& v) { return !program.blocks[v.block].on_demand; }));
  const Others others(program, certain);
  const auto first_kv = static_cast<uint32_t>(work.objects.size());
  for (uint64_t i = 0; i < certain; ++i) {
    work.objects.push_back({.name = fmt::format("kv/{}", i), .bytes = others.kv_bytes(i), .kind = NpuObjectKind::kv});
  }
  const auto rows = static_cast<uint32_t>(work.objects.size());
  work.objects.push_back({.name = "rows", .bytes = others.row_bytes(), .kind = NpuObjectKind::rows});
  Random random(options.seed);
  for (uint32_t pass = 0; pass < options.passes; ++pass) {
    work.pass_begins.push_back(work.visits.size());
    work.visits.push_back({.object = rows});
    uint32_t share = first_kv;
    for (uint32_t v : chosen_visits(program, random)) {
      const bool on_demand = program.blocks[program.visits[v].block].on_demand;
      work.visits.push_back(visit_of(program.visits[v], on_demand));
      if (!on_demand) work.visits.push_back(others.visit(share++));
    }
  }
  return work;
}

namespace {

// Objects are numbered in the order of `objects`; those that are not in every pass were chosen.
void add_passes(NpuWork& work, const AccessTrace& trace, const std::unordered_map<ObjectId, uint32_t>& index) {
  std::vector<size_t> seen(work.objects.size(), 0), last(work.objects.size(), SIZE_MAX);
  size_t pass = 0;
  for (size_t i = 0; i < trace.accesses.size(); ++i) {
    while (pass < trace.pass_begins.size() && trace.pass_begins[pass] <= i) {
      // A pass without visits is none.
      if (work.pass_begins.empty() || work.pass_begins.back() != i) work.pass_begins.push_back(i);
      ++pass;
    }
    const uint32_t object = index.at(trace.accesses[i].object);
    work.visits.push_back({.object = object, .macs = static_cast<double>(work.objects[object].bytes)});
    seen[object] += last[object] != pass;
    last[object] = pass;
  }
  for (NpuVisit& v : work.visits) v.on_demand = seen[v.object] < work.pass_begins.size();
  work.counted_macs = false;
}

}  // namespace

NpuWork npu_work(const RecordedTrace& recorded) {
  NpuWork work;
  std::unordered_map<ObjectId, uint32_t> index;
  for (uint32_t i = 0; i < recorded.blocks.size(); ++i) {
    work.objects.push_back({.name = recorded.blocks[i].name, .bytes = recorded.blocks[i].storage_bytes});
    index[i] = i;
  }
  add_passes(work, recorded.trace, index);
  return work;
}

NpuWork npu_work(const AccessTrace& trace) {
  NpuWork work;
  std::unordered_map<ObjectId, uint32_t> index;
  for (const Access& a : trace.accesses) {
    const bool added = index.insert({a.object, static_cast<uint32_t>(work.objects.size())}).second;
    if (added) work.objects.push_back({.name = fmt::format("object {}", a.object), .bytes = a.size});
  }
  add_passes(work, trace, index);
  return work;
}

}  // namespace ridge::sim
