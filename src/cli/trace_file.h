// --trace FILE of the commands that run an engine or a simulation.
//
//   std::optional<TraceFile> file;
//   if (flags.trace) file.emplace(RIDGE_TRY(TraceFile::create(*flags.trace, "ridge run")));
//   options.trace = file ? file->trace() : nullptr;        // before Engine::open
//   …
//   if (file) RIDGE_TRY(file->finish(*engine));
#pragma once

#include <memory>
#include <string>

#include "engine/engine.h"
#include "report/chrome_trace.h"

namespace ridge::cli {

class TraceFile {
 public:
  static Result<TraceFile> create(const std::string& path, std::string producer);
  Trace* trace() { return trace_.get(); }
  // Writes the file and says so.
  Result<void> finish(const Engine& engine);
  // Of a simulation, whose times begin at zero.
  Result<void> finish(TraceInfo info);

 private:
  Result<void> write(const TraceInfo& info);
  uint64_t left_out() const { return trace_->dropped() + writer_->left_out(); }

  std::string path_, producer_;
  TraceClock::time_point start_;
  std::unique_ptr<ChromeTraceWriter> writer_;
  std::unique_ptr<Trace> trace_;
};

}  // namespace ridge::cli
