// What contexts take of memory: a fit over the rungs of a ladder, with an interval, and the gate that they must pass.
//
// Added memory of a set of contexts = base + per_context · count + per_mib · MiB of weights, by least squares over the
// ladder and its fresh pools. Count and weights are told apart only as far as the rungs end within a layer; where they
// are not (one kind of context), the fit is over the count alone.
//
//   LadderFit fit = fit_ladder(device);
//   double mib = fit.mib(20, 640), plus_minus = fit.interval(20, 640);     // 20 contexts, 640 MiB of weights
#pragma once

#include <array>
#include <optional>

#include "sim/context_device.h"

namespace ridge::sim {

struct LadderFit {
  double base_mib = 0, per_context_mib = 0, per_weight_mib = 0;
  double residual_mib = 0;  // standard deviation of the rungs around the fit
  size_t points = 0;
  bool by_weights = false;  // count and weights; else the count alone

  double mib(double contexts, double weight_mib) const;
  // Half the width of the 95 % interval for a new measurement there (Student's t); nothing without a spare point.
  std::optional<double> interval(double contexts, double weight_mib) const;
  // One more context of these weights.
  double context_mib(double weight_mib) const { return per_context_mib + per_weight_mib * weight_mib; }

  std::array<std::array<double, 3>, 3> inverse = {};  // of the normal equations
};
LadderFit fit_ladder(const ContextDevice& device);

// The document's two ways to extrapolate to all contexts: the growth of the last two rungs goes on; device mappings
// grow in proportion (nothing where the profile has none).
double extrapolated_added_mib(const ContextDevice& device);
std::optional<double> extrapolated_mapping_mib(const ContextDevice& device);

// Added memory at which swap reaches the gate, between the rungs around it; a rung that held on counts with the swap
// that grew meanwhile. Where no rung reached the gate: the last one's.
double gate_mib(const ContextDevice& device);

}  // namespace ridge::sim
