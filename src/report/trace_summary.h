// What a recorded trace amounts to: passes and where their time went, rates over time, and what was where in a window.
//
//   TraceSummary s = summarise(trace);
//   for (const PassKind& kind : s.kinds) kind.name, kind.median_s;
//   TraceWindow window = window_of(trace, s, {.first = 10, .last = 11});
//   std::vector<Residency> map = residency(trace, window);
//
// Not for: drawing (trace_report.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/trace_reader.h"

namespace ridge {

struct Span {
  int64_t begin = 0, end = 0;  // ns
  int64_t length() const { return end - begin; }
};

// A named part of the time of passes: "blocks", "attention", "waiting for storage", …
struct TimePart {
  std::string name;
  double seconds = 0;
};

struct TracedPass {
  Span span;
  uint32_t name = 0, tokens = 0;
  int64_t wait_ns = 0;
};

// All passes of one name.
struct PassKind {
  std::string name;
  uint64_t passes = 0, tokens = 0;
  double seconds = 0;
  double median_s = 0, p10_s = 0, p90_s = 0;  // of a pass
  // Sum to `seconds`: blocks, other work by length, then waiting for storage, init and release, and the rest.
  std::vector<TimePart> parts;
  double reading_s = 0;     // reads were under way, within these passes
  double exposed_s = 0;     // of that, computing stood still
  uint64_t read_bytes = 0;  // of reads, each by the share of its time within these passes
};

struct TraceSummary {
  Span whole;   // all events
  Span passes;  // from the first pass to the last; `whole` if there are none
  std::vector<TracedPass> each;
  std::vector<PassKind> kinds;  // in the order of their first pass
  double between_s = 0;         // within `passes`, but in none
  double loading_s = 0;         // init events
  uint64_t read_bytes = 0, read_count = 0;
  std::optional<uint64_t> peak_bytes;  // of memory samples
};
TraceSummary summarise(const RecordedTrace& trace);

// The time in which the device worked on a read: reads queue, and one that was submitted early waits for those before.
// In the order of events; empty spans for others than reads.
std::vector<Span> device_spans(const RecordedTrace& trace);

// Mean bytes per second in `bins` equal parts of a span.
std::vector<double> bandwidth(const RecordedTrace& trace, const Span& span, size_t bins);
// The highest memory in each of `bins` equal parts, carried on where there is no sample; 0: not yet known.
std::vector<uint64_t> memory_over_time(const RecordedTrace& trace, const Span& span, size_t bins);

// Which passes are drawn in detail.
struct PassRange {
  size_t first = 0, last = 0;
};
struct TraceWindow {
  Span span;
  std::optional<PassRange> passes;
};
// The last full passes, two unless that is more than can be drawn. Without passes the end of the trace.
TraceWindow default_window(const RecordedTrace& trace, const TraceSummary& summary);
TraceWindow window_of(const TraceSummary& summary, const PassRange& range);

// What happened to one block in a window, in order, cut to the window.
struct Residency {
  std::vector<Span> resident, loading, init, release, waited, computed;
};
// By block; pinned blocks without init events of their own are resident from the start.
std::vector<Residency> residency(const RecordedTrace& trace, const Span& window);

}  // namespace ridge
