// A model's programs at the block sizes that are worth trying, with what of a plan depends on no budget.
//
// Made when they are first asked for: the dozens of plans of a curve share them.
//
//   Candidates candidates(input);               // the input's budget may change while this lives, nothing else of it
//   for (size_t i = 0; i < candidates.size(); ++i) candidates[i].program
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "memory/streaming_source.h"
#include "plan/pass_model.h"
#include "plan/planner.h"

namespace ridge {

// A placement and what its source takes.
struct SettledPlacement {
  Placement placement;
  SourceMemory memory;
};

// Of a program, with slots for the same reserve: everything pinned, with and without the gathered rows kept; and
// nothing pinned. Filled by fit().
struct SettledPlacements {
  std::optional<SettledPlacement> all_kept, all, none;
};

struct Candidate {
  uint64_t slot = 0;
  Program program;
  PassModel decode;
  std::vector<PassModel> prompts;  // by batch of the input: a pass of so many tokens
  ElasticRoom elastic;
  SettledPlacements known = {};
};

class Candidates {
 public:
  explicit Candidates(const PlanInput& input);
  size_t size() const { return slots_.size(); }
  uint64_t slot(size_t i) const { return slots_[i]; }  // of candidate i, which need not be made for it
  Candidate& operator[](size_t i);

 private:
  const PlanInput& input_;
  std::vector<uint64_t> slots_;  // from whole parts down
  std::vector<std::optional<Candidate>> made_;
};

// As make_plan(input), for one of several budgets.
Result<Plan> make_plan(const PlanInput& input, Candidates& candidates);

}  // namespace ridge
