#include "sim/chosen_visits.h"

#include <utility>

namespace ridge::sim {
namespace {

// What is known of the bundles of a layer: one may be touched more often than another.
bool differ(const Program& program, const ExpertGroup& g, const std::vector<double>& chance) {
  const BlockId first = program.steps[g.first_step].front().block;
  for (uint32_t e = 1; e < g.experts; ++e) {
    if (chance[program.steps[g.first_step + 2 * e].front().block] != chance[first]) return true;
  }
  return false;
}

}  // namespace

std::vector<uint32_t> chosen_visits(const Program& program, Random& random) {
  std::vector<uint8_t> chosen(program.blocks.size(), 0);
  std::vector<double> chance(program.blocks.size(), 0);
  for (const Visit& v : program.visits) chance[v.block] = v.chance;
  for (const ExpertGroup& g : program.expert_groups) {
    if (g.held && differ(program, g, chance)) {
      for (uint32_t e = 0; e < g.experts; ++e) {
        const BlockId block = program.steps[g.first_step + 2 * e].front().block;
        chosen[block] = random.uniform() < chance[block] ? 1 : 0;
      }
      continue;
    }
    std::vector<uint32_t> experts(g.experts);
    for (uint32_t e = 0; e < g.experts; ++e) experts[e] = e;
    for (uint32_t k = 0; k < g.used && k < g.experts; ++k) {
      std::swap(experts[k], experts[k + random.below(g.experts - k)]);
      for (uint32_t step : {g.first_step + 2 * experts[k], g.first_step + 2 * experts[k] + 1}) {
        for (const Slice& s : program.steps[step]) chosen[s.block] = 1;
      }
    }
  }
  std::vector<uint32_t> out;
  for (uint32_t i = 0; i < program.visits.size(); ++i) {
    const BlockId block = program.visits[i].block;
    if (!program.blocks[block].on_demand || chosen[block]) out.push_back(i);
  }
  return out;
}

}  // namespace ridge::sim
