// Points of a roofline on machines that are not here: the time of each phase and operator is the bound of its roofs, by
// the figures of a machine's profile. Several machines show how the same model meets different ridge points.
//
// Not for: predicting a schedule with streaming and overlap (sim/).
//
//   MachineProfile pi = RIDGE_TRY(load_profile("profiles/raspberry-pi-5.toml"));
//   add_analytic_points(*model, pi, {.scenarios = scenarios({})}, report);
#pragma once

#include "analyze/roofline_points.h"
#include "machine/profile.h"

namespace ridge {

// Roofs of a device by its figures: memory; int8 (else f16, else f32) for int8 operations; f16 (else f32) for float
// ones. A profile that was measured here: reads at the footprint, and
// the highest peaks of int8 and f32 (of one core times its threads in profiles without them).
MachineRoofs roofs_of(const MachineProfile& machine, uint64_t footprint_bytes);

struct AnalyticOptions {
  std::vector<Scenario> scenarios;
  CostRules rules = {};
};

// Of the whole answer, at its middle depth. Bad input if the profile has no memory figure.
Result<void> add_analytic_points(const Model& model, const MachineProfile& machine, const AnalyticOptions& options,
                                 RooflineReport& report);

}  // namespace ridge
