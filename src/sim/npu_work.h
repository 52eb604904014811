// What passes ask of a machine of tiers: objects that lie somewhere (blocks of weights, shares of the key/value cache)
// and the order in which passes visit them, each visit with its operations.
//
//   NpuWork work = npu_work(program, {.passes = 8});            // a model
//   NpuWork work = npu_work(RIDGE_TRY(read_recorded(path)));    // what a run visited
//
// Not for: where objects lie, or what time that takes (npu_run.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "program/program.h"
#include "sim/recorded_trace.h"

namespace ridge::sim {

enum class NpuObjectKind : uint8_t {
  weights,
  kv,    // a share of the key/value cache
  rows,  // embedding rows, norms: of every token others, so never kept
};

struct NpuObject {
  std::string name;
  uint64_t bytes = 0;  // as stored: of weights in the file
  NpuObjectKind kind = NpuObjectKind::weights;
};

struct NpuVisit {
  uint32_t object = 0;
  bool on_demand = false;           // known only when the visit before it is done: a router chose it
  double macs = 0, float_macs = 0;  // multiply-adds on integers, on floats
  uint64_t activation_bytes = 0;    // read and written
};

struct NpuWork {
  std::vector<NpuObject> objects;
  std::vector<NpuVisit> visits;
  std::vector<size_t> pass_begins;  // index into visits, ascending; the first is 0
  bool counted_macs = true;         // false: a trace has none; one multiply-add a byte stands in

  size_t pass_end(size_t pass) const { return pass + 1 < pass_begins.size() ? pass_begins[pass + 1] : visits.size(); }
  uint64_t bytes(NpuObjectKind kind) const;  // of all objects of the kind
};

struct NpuWorkOptions {
  uint32_t passes = 8;
  uint64_t seed = 1;  // of the experts that routers choose, all alike
};
// The key/value cache and attention's operations are spread evenly over the visits that no router chooses, a share of
// its own after each.
NpuWork npu_work(const Program& program, const NpuWorkOptions& options);
// A block that some pass does not visit is taken for one that a router chose.
NpuWork npu_work(const RecordedTrace& recorded);
NpuWork npu_work(const AccessTrace& trace);

}  // namespace ridge::sim
