// A trace as a file in Chrome's trace-event format, which Perfetto (ui.perfetto.dev) and chrome://tracing open and
// `ridge report` reads: lanes with names, blocks as slices with their bytes and rates, counters for memory and for the
// bandwidth of reading. docs/tracing.md describes the file.
//
// While a run lasts its events wait in a file without a name, 48 bytes each; the text is written at the end, so that it
// costs the run nothing.
//
//   auto writer = RIDGE_TRY(ChromeTraceWriter::create("out.json"));
//   Trace trace(ChromeTraceWriter::trace_options());
//   trace.attach(writer.get());
//   …                                                        // engine or simulator: trace.add()
//   trace.flush();
//   RIDGE_TRY(writer->finish(info));
//
// One thread at a time (a Trace sees to that).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "format/output_file.h"
#include "format/spool_file.h"
#include "program/trace.h"

namespace ridge {

// What a trace belongs to: everything the report shows that is no event.
struct TraceInfo {
  std::string producer;  // "ridge run"
  std::string title;     // of the picture: the model
  // Shown as they are, in this order: {"threads", "2"}.
  std::vector<std::pair<std::string, std::string>> facts;
  const Program* program = nullptr;      // names and bytes of the blocks; must not be null
  const Placement* placement = nullptr;  // which of them are pinned from the start; nullptr: none
  TraceClock::time_point start;          // the origin of the file's times: before every event
  // Memory: what was promised (0: nothing), and what it was to be used for.
  uint64_t budget_bytes = 0;
  std::vector<std::pair<std::string, uint64_t>> account;
  // Lower bounds of a pass of this name, seconds, with the reason: {"storage", 0.012}. The largest is T*.
  std::string bound_pass = "decode";
  std::vector<std::pair<std::string, double>> bounds;
  std::string rates;                    // where those behind the bounds come from: "The rates behind T* are …"
  double storage_roof_bytes_per_s = 0;  // drawn beside the bandwidth of reading, 0: unknown
  uint64_t left_out = 0;                // events that the trace had no room for
};

class ChromeTraceWriter final : public TraceSink {
 public:
  // Errors of the file's folder are found now, not after the run. An existing file is replaced by finish().
  static Result<std::unique_ptr<ChromeTraceWriter>> create(const std::string& path);
  // For the trace that is written: a buffer small enough for a budget of 64 MiB, and what the writer takes beside it.
  static TraceOptions trace_options();

  void take(std::span<const TraceEvent> events) override;
  // Events beyond kMostEvents; they are missing in the file, which says so.
  uint64_t left_out() const { return left_out_; }

  // Writes the file. I/O errors of any write so far.
  Result<void> finish(const TraceInfo& info);

  static constexpr uint64_t kMostEvents = 4'000'000;  // about 400 MB of text: more no viewer opens

 private:
  ChromeTraceWriter(SpoolFile spool, OutputFile out) : spool_(std::move(spool)), out_(std::move(out)) {}

  SpoolFile spool_;
  OutputFile out_;
  uint64_t events_ = 0, left_out_ = 0;
  std::optional<Error> error_;
};

}  // namespace ridge
