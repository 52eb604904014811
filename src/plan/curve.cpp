#include "plan/curve.h"

#include <algorithm>

#include "base/check.h"
#include "base/units.h"
#include "plan/candidates.h"

namespace ridge {
namespace {

constexpr double kTenth = 0.1;
constexpr int kHalvings = 4;

// An input that must not lower the fastest so far.
Result<CurvePoint> point_at(PlanInput& input, Candidates& candidates, uint64_t budget, const CurvePoint* before) {
  input.budget = budget;
  const Plan plan = RIDGE_TRY(make_plan(input, candidates));
  CurvePoint p{.budget = budget,
               .tokens_per_s = plan.decode.seconds > 0 ? 1 / plan.decode.seconds : 0,
               .pinned_bytes = plan.placement.pinned_bytes(plan.program),
               .streamed_bytes = plan.placement.streamed_bytes(plan.program)};
  if (before == nullptr || p.tokens_per_s >= before->tokens_per_s) return p;
  p = *before;
  p.budget = budget;
  return p;
}

double per_mib(const CurvePoint& from, const CurvePoint& to) {
  if (to.budget <= from.budget) return 0;
  return (to.tokens_per_s - from.tokens_per_s) * static_cast<double>(kMiB) /
         static_cast<double>(to.budget - from.budget);
}

bool is_useful(const BudgetCurve& curve, const CurvePoint& at) {
  const CurvePoint &first = curve.points.front(), &last = curve.points.back();
  if (at.budget >= last.budget || first.tokens_per_s >= last.tokens_per_s) return true;
  if (at.budget <= first.budget) return false;
  return per_mib(at, last) < kTenth * per_mib(first, at);
}

Result<void> find_useful(PlanInput& input, Candidates& candidates, BudgetCurve& curve) {
  auto first =
      std::find_if(curve.points.begin(), curve.points.end(), [&](const CurvePoint& p) { return is_useful(curve, p); });
  CurvePoint found = *first;
  if (first != curve.points.begin()) {
    CurvePoint below = *std::prev(first);
    for (int i = 0; i < kHalvings; ++i) {
      const uint64_t middle = below.budget + (found.budget - below.budget) / 2;
      CurvePoint p = RIDGE_TRY(point_at(input, candidates, middle, &below));
      (is_useful(curve, p) ? found : below) = p;
    }
  }
  curve.useful = found.budget;
  curve.before_useful = per_mib(curve.points.front(), found);
  curve.after_useful = per_mib(found, curve.points.back());
  return {};
}

}  // namespace

Result<BudgetCurve> budget_curve(PlanInput input, const CurveOptions& options) {
  RIDGE_CHECK(options.points >= 2, "a curve has two ends");
  BudgetCurve curve;
  curve.smallest = smallest_account(input).total();
  input.budget = std::nullopt;
  Candidates candidates(input);
  curve.resident = RIDGE_TRY(make_plan(input, candidates)).account.total();
  // A model so small that its largest batch is dearer than all of its weights has one point in effect.
  const uint64_t span = curve.resident > curve.smallest ? curve.resident - curve.smallest : 0;
  for (uint32_t i = 0; i < options.points; ++i) {
    const uint64_t budget = curve.smallest + span * i / (options.points - 1);
    const CurvePoint* before = curve.points.empty() ? nullptr : &curve.points.back();
    CurvePoint p = RIDGE_TRY(point_at(input, candidates, budget, before));
    curve.points.push_back(p);
  }
  RIDGE_TRY(find_useful(input, candidates, curve));
  return curve;
}

}  // namespace ridge
