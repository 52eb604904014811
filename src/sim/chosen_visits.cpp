#include "sim/chosen_visits.h"

#include <utility>

namespace ridge::sim {

std::vector<uint32_t> chosen_visits(const Program& program, Random& random) {
  std::vector<uint8_t> chosen(program.blocks.size(), 0);
  for (const ExpertGroup& g : program.expert_groups) {
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
