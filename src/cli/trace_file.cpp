#include "cli/trace_file.h"

#include <fmt/format.h>

#include "base/log.h"
#include "base/units.h"
#include "cli/common.h"
#include "report/engine_trace.h"

namespace ridge::cli {

Result<TraceFile> TraceFile::create(const std::string& path, std::string producer) {
  TraceFile file;
  file.path_ = path;
  file.producer_ = std::move(producer);
  file.writer_ = RIDGE_TRY(ChromeTraceWriter::create(path));
  file.trace_ = std::make_unique<Trace>(ChromeTraceWriter::trace_options());
  file.trace_->attach(file.writer_.get());
  file.start_ = TraceClock::now();
  return file;
}

Result<void> TraceFile::finish(const Engine& engine) {
  trace_->flush();
  return write(engine_trace_info(engine, {.producer = producer_, .start = start_, .left_out = left_out()}));
}

Result<void> TraceFile::finish(TraceInfo info) {
  trace_->flush();
  info.producer = producer_;
  info.start = TraceClock::time_point{};
  info.left_out = left_out();
  return write(info);
}

Result<void> TraceFile::write(const TraceInfo& info) {
  RIDGE_TRY(writer_->finish(info));
  if (info.left_out > 0) {
    note(fmt::format("{}: the last {} events are left out: a trace holds at most {}", path_,
                     format_count(info.left_out), format_count(ChromeTraceWriter::kMostEvents)));
  }
  note(fmt::format("trace in {}: open it in ui.perfetto.dev, or see `ridge report {}`", path_, path_));
  return {};
}

}  // namespace ridge::cli
