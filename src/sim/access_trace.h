// The order in which objects (blocks) are asked for: what replacement policies are judged on.
//
// A trace is cyclic (a program walked again and again), recorded (`ridge run --record`), or a file of other simulators
// in oracleGeneral form, so that libCacheSim can be run on the same trace.
//
//   AccessTrace trace = cyclic_trace(std::vector<uint64_t>(84, 1), 13);
//   RIDGE_TRY(write_oracle_general(trace, "anima.oracleGeneral"));
//   trace.accesses[0].next     // 84: the index of its next use
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace ridge::sim {

using ObjectId = uint64_t;
inline constexpr uint64_t kNever = UINT64_MAX;

struct Access {
  ObjectId object = 0;
  uint64_t size = 1;       // bytes, or 1 where all objects count alike
  uint64_t next = kNever;  // index of the next access of the same object; kNever: there is none
};

struct AccessTrace {
  std::vector<Access> accesses;
  std::vector<size_t> pass_begins;  // index into accesses, ascending; the first is 0 if there is any

  void begin_pass() { pass_begins.push_back(accesses.size()); }
  void add(ObjectId object, uint64_t size) { accesses.push_back({.object = object, .size = size, .next = kNever}); }
  // Fills every `next`; called once all accesses are there.
  void link();
  size_t distinct() const;
};

// Objects 0, 1, … of these sizes, `passes` times. Linked.
AccessTrace cyclic_trace(std::span<const uint64_t> sizes, size_t passes);

// A file of records {u32 time, u64 object, u32 size, i64 next}, little-endian, packed in 24 bytes (libCacheSim's
// oracleGeneral). `time` is the pass, `next` the number, from 1, of the access that uses the object next, or −1.
// Sizes above 4 GiB − 1 do not fit and are refused.
Result<void> write_oracle_general(const AccessTrace& trace, const std::string& path);
// A pass begins where the time changes. Next uses are computed anew from the order, whatever the file says of them. Bad
// input: a record that is cut, an object of no size (others skip it, which would shift every number), a huge file.
Result<AccessTrace> read_oracle_general(const std::string& path);

}  // namespace ridge::sim
