// The blocks that one pass visits where routers choose experts: in the order of the pass; of every layer's experts as
// many as a token uses, any of them alike. Bundles of neurons that a pack knows more of come each by its own chance.
//
//   Random random(1);
//   for (uint32_t visit : chosen_visits(program, random)) use(program.visits[visit].block);
#pragma once

#include <vector>

#include "program/program.h"
#include "sim/random.h"

namespace ridge::sim {

// Indices into program.visits.
std::vector<uint32_t> chosen_visits(const Program& program, Random& random);

}  // namespace ridge::sim
