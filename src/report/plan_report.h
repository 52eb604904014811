// A plan for people and for programs: what `ridge plan` prints.
//
//   PlanStudy study{.engine = engine.get(), .curve = curve};
//   print(plan_text(study, {.explain = true, .utf8 = true}));
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "engine/engine.h"
#include "plan/curve.h"

namespace ridge {

struct PlanStudy {
  const Engine* engine = nullptr;  // planned; weights need not be loaded
  BudgetCurve curve;
};

struct PlanTextOptions {
  bool explain = false;  // every block, and the account
  bool utf8 = true;      // the chart
};

std::string plan_text(const PlanStudy& study, const PlanTextOptions& options);
nlohmann::ordered_json plan_json(const PlanStudy& study, bool blocks);
std::string plan_svg(const PlanStudy& study);

}  // namespace ridge
