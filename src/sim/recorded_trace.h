// The blocks that a run visited, as a JSON file: written by `ridge run --record`, read by `ridge sim`.
//
//   {"format": "ridge-visits", "version": 1, "model": "…",
//    "blocks": [{"name": "blk.0.attn", "storage_bytes": 1, "memory_bytes": 1}, …], "passes": [[0, 1, …], …]}
//
//   RIDGE_TRY(write_recorded(program, order, pass_begins, "model.gguf", "trace.json"));
//   RecordedTrace t = RIDGE_TRY(read_recorded("trace.json"));     // t.trace.accesses: objects are indices into blocks
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "program/program.h"
#include "sim/access_trace.h"

namespace ridge::sim {

struct RecordedBlock {
  std::string name;
  uint64_t storage_bytes = 0, memory_bytes = 0;
};

struct RecordedTrace {
  std::string model;
  std::vector<RecordedBlock> blocks;
  AccessTrace trace;  // sizes are memory_bytes; linked
};

// pass_begins: indices into order, as RecordingSource gives them. I/O errors only.
Result<void> write_recorded(const Program& program, std::span<const BlockId> order, std::span<const size_t> pass_begins,
                            const std::string& model, const std::string& path);
// Bad input: no JSON, another format, a block that is not in the list or has no size.
Result<RecordedTrace> read_recorded(const std::string& path);

}  // namespace ridge::sim
