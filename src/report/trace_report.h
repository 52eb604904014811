// A recorded trace as one HTML page that needs nothing else: where the time went, the bound beside what was reached,
// which block was where and when, the lanes, memory against the budget, the bandwidth of reading, and the run's facts.
// docs/tracing.md explains each picture.
//
//   RecordedTrace trace = RIDGE_TRY(read_trace("out.json"));
//   std::string html = RIDGE_TRY(trace_report(trace, {}));
#pragma once

#include <optional>
#include <string>

#include "report/trace_summary.h"

namespace ridge {

struct TraceReportOptions {
  std::optional<PassRange> passes;  // drawn in detail, from 0; nothing: default_window()
};

// Usage error for passes that the trace does not have.
Result<std::string> trace_report(const RecordedTrace& trace, const TraceReportOptions& options);

// The sections that show a window (trace_map.cpp).
std::string residency_section(const RecordedTrace& trace, const TraceWindow& window);
std::string timeline_section(const RecordedTrace& trace, const TraceWindow& window);
// Labels of an axis of time from `from_s` on, evenly spaced, all in the unit of the largest.
std::vector<std::string> time_labels(double from_s, double to_s);

}  // namespace ridge
