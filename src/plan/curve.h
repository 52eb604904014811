// Speed over the budget: what a MiB more would buy.
//
//   BudgetCurve curve = RIDGE_TRY(budget_curve(engine.planning(), {.points = 24}));
//   curve.smallest; curve.useful; curve.resident; curve.points[i].tokens_per_s
#pragma once

#include <cstdint>
#include <vector>

#include "plan/planner.h"

namespace ridge {

struct CurveOptions {
  uint32_t points = 24;  // at least 2: evenly spaced from the smallest budget to the one that holds everything
};

struct CurvePoint {
  uint64_t budget = 0;
  double tokens_per_s = 0;  // of decoding, as predicted
  uint64_t pinned_bytes = 0;
  uint64_t streamed_bytes = 0;  // per decode pass
};

// Points ascend in budget and never fall in speed: what fits a budget fits a larger one as well, so of the plans up to
// a budget the fastest counts.
struct BudgetCurve {
  std::vector<CurvePoint> points;
  uint64_t smallest = 0;  // below it nothing runs
  uint64_t resident = 0;  // from it on, nothing streams
  // The smallest budget from which on, all the way to `resident`, a MiB buys on average less than a tenth of what a MiB
  // bought from `smallest` up to it. Where speed rises ever faster up to the last byte, that is `resident`.
  uint64_t useful = 0;
  double before_useful = 0, after_useful = 0;  // tokens per second and MiB, on average
};

// One plan per point, and a few more to find the useful budget: some milliseconds each. The input's own budget is not
// looked at.
Result<BudgetCurve> budget_curve(PlanInput input, const CurveOptions& options = {});

}  // namespace ridge
