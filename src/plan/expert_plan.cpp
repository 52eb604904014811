#include "plan/expert_plan.h"

#include <algorithm>
#include <cmath>

namespace ridge {
namespace {

constexpr uint32_t kFewestPassing = 2;
constexpr int kShares = 8;  // ways to divide, less one

}  // namespace

ExpertDemand expert_demand(const Program& program) {
  ExpertDemand d;
  const auto groups = program.expert_blocks();
  d.layers = static_cast<uint32_t>(groups.size());
  for (size_t g = 0; g < groups.size(); ++g) {
    const ExpertGroup& group = program.expert_groups[g];
    if (group.experts == 0) continue;
    const size_t per_expert = (groups[g].size() + group.experts - 1) / group.experts;
    if (group.held) d.at_once = std::max(d.at_once, static_cast<uint32_t>(groups[g].size()));
    d.per_token = std::max(d.per_token, static_cast<uint32_t>(group.used * per_expert));
  }
  for (const Visit& v : program.visits) {
    const Block& block = program.blocks[v.block];
    if (!block.on_demand) continue;
    ++d.blocks;
    d.memory_bytes += block.memory_bytes;
    d.storage_per_token += v.chance * static_cast<double>(block.storage_bytes);
  }
  return d;
}

uint32_t fewest_expert_slots(const Program& program) {
  uint32_t slots = kFewestPassing;
  for (const ExpertGroup& g : program.expert_groups) {
    if (g.held) slots = std::max(slots, g.experts);  // a block each
  }
  return slots;
}

uint32_t passing_slots(const ExpertDemand& demand, uint32_t cache, uint64_t slot_bytes, uint64_t capacity) {
  constexpr uint64_t kShareOfCapacity = 8;
  if (demand.at_once > 0) return std::max(kFewestPassing, demand.at_once - std::min(demand.at_once, cache));
  if (cache + kFewestPassing >= demand.per_token) return kFewestPassing;
  const uint64_t wished = demand.per_token - cache - kFewestPassing;
  return kFewestPassing + static_cast<uint32_t>(std::min(wished, capacity / kShareOfCapacity / slot_bytes));
}

double expected_hits(double share) { return std::sqrt(std::clamp(share, 0.0, 1.0)); }

ExpertSplit split_for_experts(const ExpertDemand& demand, const Rates& rates, uint64_t slot_bytes, uint64_t capacity) {
  ExpertSplit best;
  if (demand.layers == 0 || slot_bytes == 0) return best;
  double best_s = INFINITY;
  const double panel_bytes = static_cast<double>(demand.memory_bytes);
  const uint32_t most = (demand.blocks + demand.layers - 1) / demand.layers;  // blocks of a layer
  const uint64_t row = slot_bytes * demand.layers;
  const auto room = static_cast<uint32_t>(std::min<uint64_t>(capacity / row, most));
  for (int cached = 0; cached <= kShares; ++cached) {
    ExpertSplit s{.room = room};
    s.cache = static_cast<uint32_t>(std::min<uint64_t>(capacity * static_cast<uint64_t>(cached) / kShares / row, most));
    if (s.cache > 0 && s.cache < demand.per_token && !demand.one_cache) continue;
    s.passing = passing_slots(demand, s.cache, slot_bytes, capacity);
    const uint64_t there = std::max(kFewestPassing, demand.at_once) * slot_bytes;  // without any of this
    const uint64_t slots = s.cache * row + s.passing * slot_bytes;
    if (slots > capacity + there) continue;
    s.pin_bytes = capacity + there - std::max(slots, there);
    const double pinned = std::min(1.0, static_cast<double>(s.pin_bytes) / panel_bytes);
    const double streamed_blocks = (1 - pinned) * demand.blocks;
    if (s.cache > 0) s.hits = streamed_blocks > 0 ? expected_hits(s.cache * demand.layers / streamed_blocks) : 1.0;
    // Which were used most tells more than which were used last once there is room for what two tokens demand.
    s.policy = s.cache >= 2 * demand.per_token ? ExpertPolicy::decayed_lfu : ExpertPolicy::lru;
    if (demand.one_cache) s.policy = ExpertPolicy::importance;
    const double streamed = (1 - pinned) * demand.storage_per_token;
    const double seconds = streamed * (1 - s.hits) / rates.storage + streamed / rates.rearrange;
    if (seconds >= best_s) continue;
    best_s = seconds;
    best = s;
  }
  return best;
}

}  // namespace ridge
