// The time of day as reports and profiles keep it.
//
//   profile.measured_at = utc_now();    // "2026-01-31T12:00:00Z"
#pragma once

#include <string>

namespace ridge {

std::string utc_now();  // UTC, ISO 8601, whole seconds

}  // namespace ridge
