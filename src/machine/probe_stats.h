// Median and quartiles of repeated measurements, and whether they agree with one another.
//
// Not for: averages of rates over different amounts of work.
//
//   Measured m = summarize({14.9, 15.2, 15.1});   // value 15.1, low 15.0, high 15.15, runs 3
//   if (spread(m) > kWideSpread) …                // the machine was not quiet
#pragma once

#include <span>

#include "machine/profile.h"

namespace ridge {

// Above this, (high − low) / value says that something else used the machine.
inline constexpr double kWideSpread = 0.15;

// Quartiles are interpolated between the samples. No samples: all zero.
Measured summarize(std::span<const double> samples);

// (high − low) / value, 0 if there is no value.
double spread(const Measured& measured);

}  // namespace ridge
