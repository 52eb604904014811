// Median and quartiles of repeated measurements, and whether they agree with one another.
//
// Not for: averages of rates over different amounts of work.
//
//   Measured m = summarize({14.9, 15.2, 15.1});   // value 15.1, low 15.0, high 15.15, runs 3
//   if (!settled(m)) …                            // the machine was not quiet
#pragma once

#include <span>

#include "machine/profile.h"

namespace ridge {

// A figure has settled if its quartiles are no further apart than this, by its value: then another probe finds the same
// within as much (docs/measurements.md). With fewer samples than this many nothing is known of their spread.
inline constexpr double kSettledSpread = 0.05;
inline constexpr size_t kLeastSamples = 3;

// Quartiles are interpolated between the samples. No samples: all zero.
Measured summarize(std::span<const double> samples);

// (high − low) / value, 0 if there is no value.
double spread(const Measured& measured);

bool settled(const Measured& measured);

}  // namespace ridge
