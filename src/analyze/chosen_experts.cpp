#include "analyze/chosen_experts.h"

#include <algorithm>
#include <set>

namespace ridge {

bool has_experts(const Program& program) {
  return std::any_of(program.blocks.begin(), program.blocks.end(), [](const Block& b) { return b.on_demand; });
}

uint64_t chosen_expert_bytes(const RecordingSource& recording) {
  const std::span<const BlockId> order = recording.order();
  const std::span<const size_t> begins = recording.pass_begins();
  uint64_t bytes = 0;
  for (size_t pass = 0; pass < begins.size(); ++pass) {
    const size_t end = pass + 1 < begins.size() ? begins[pass + 1] : order.size();
    std::set<BlockId> seen;
    for (size_t i = begins[pass]; i < end; ++i) {
      const Block& block = recording.program().blocks[order[i]];
      if (block.on_demand && seen.insert(order[i]).second) bytes += block.memory_bytes;
    }
  }
  return bytes;
}

}  // namespace ridge
