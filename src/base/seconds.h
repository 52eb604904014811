// A duration in seconds, for reports.
//
//   fmt::format("{:.2f} s", seconds(times.encode));
#pragma once

#include <chrono>

namespace ridge {

inline double seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

}  // namespace ridge
