// Reads what chrome_trace.h wrote. Any other file, or one that was changed so that it makes no sense, is bad input with
// the place and what was expected.
//
//   RecordedTrace trace = RIDGE_TRY(read_trace("out.json"));
//   for (const RecordedEvent& e : trace.events) e.lane, e.begin_ns;
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "program/trace.h"

namespace ridge {

struct RecordedBlock {
  std::string name;
  uint64_t storage_bytes = 0, memory_bytes = 0;
  bool pinned = false, on_demand = false;
};

struct RecordedEvent {
  int64_t begin_ns = 0, end_ns = 0;  // since the origin of the trace
  uint64_t bytes = 0;
  BlockId block = kNoBlock;  // < blocks.size(), or none
  uint32_t name = 0;         // index into names
  uint32_t tokens = 0;       // of a pass
  Lane lane = Lane::compute;
};

struct RecordedTrace {
  std::string path, producer, title;
  std::vector<std::pair<std::string, std::string>> facts;
  uint64_t budget_bytes = 0;
  std::vector<std::pair<std::string, uint64_t>> account;
  std::string bound_pass;
  std::vector<std::pair<std::string, double>> bounds;  // seconds
  std::string rates;                                   // where those behind the bounds come from
  double storage_roof_bytes_per_s = 0;
  uint64_t left_out = 0;
  std::vector<RecordedBlock> blocks;
  std::vector<RecordedEvent> events;  // by begin; at least one
  std::vector<std::string> names;
};

// Bad input as above; I/O errors for what cannot be read.
Result<RecordedTrace> read_trace(const std::string& path);

}  // namespace ridge
