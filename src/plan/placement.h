// Which blocks are pinned, and where in the order of the pass they lie.
//
// How many of which kind: the knapsack of seconds saved per byte. Which of those that are alike: so that reads hide
// behind computing, i.e. evenly in time, since blocks differ in size and in how long they are computed on. Of several
// ways to spread, the one with the shortest pass by the model is taken and improved by exchanging blocks.
//
// Not for: experts, unless everything else is pinned (planner.h), slots and budgets (planner.h).
//
//   PassModel decode(program, rates, 1), prompt(program, rates, 128);
//   PinChoice c = choose_pins(program, {&decode, &prompt}, 300 * kMiB);
//   c.pinned[b]; c.gap
//
// The same result for the same input, whatever the machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "plan/pass_model.h"
#include "program/program.h"

namespace ridge {

// How pins are chosen. All but the first are there to be compared with.
enum class PinRule : uint8_t {
  planned,  // by seconds saved per byte, spread over the pass in time
  leading,  // the first blocks of the pass, as far as they fit
  none,     // nothing: every block streams, read ahead
  lru,  // by recency: on a cyclic order nothing is ever found (docs/simulator.md), so each block is read in its turn
};
std::optional<PinRule> pin_rule(std::string_view name);

// The passes whose time counts: a decode pass, and a prompt pass by token.
struct PassModels {
  const PassModel* decode = nullptr;
  const PassModel* prompt = nullptr;  // may be nullptr
  uint32_t prompt_tokens = 1;
  double expert_hits = 0;

  // Seconds of a decoded token and of one prompt token.
  double seconds(const std::vector<uint8_t>& pinned, uint32_t slots = 2) const;
};

struct PinOptions {
  // Exchanges of pinned and streamed blocks that are tried: each costs two passes of the model, 50 µs with 2,000
  // blocks.
  uint32_t most_tries = 200;
};

struct PinChoice {
  std::vector<uint8_t> pinned;  // by BlockId
  double seconds = 0;           // PassModels::seconds
  double gap = 0;               // share of the time saved that a better choice of blocks could add at most
  bool exact = true;            // the knapsack was solved to the end
};

// Blocks of the program's order (experts left out) in at most `capacity` bytes as panels.
PinChoice choose_pins(const Program& program, const PassModels& models, uint64_t capacity,
                      const PinOptions& options = {});

// The first blocks of the pass in at most `capacity` bytes (as panels), experts left out.
std::vector<uint8_t> leading_pins(const Program& program, uint64_t capacity);

// Evenly spaced pins of at most `capacity` bytes (as panels), by bytes in the order of visits; blocks of every pass
// before experts. Costs little: for comparing plans, and where no rates are known.
std::vector<uint8_t> spread_pins(const Program& program, uint64_t capacity);
// The same, of experts alone: adds to `pinned`.
void spread_expert_pins(const Program& program, uint64_t capacity, std::vector<uint8_t>& pinned);

}  // namespace ridge
