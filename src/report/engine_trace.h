// What the trace of an engine belongs to: its model, plan, account and bound.
//
//   TraceInfo info = engine_trace_info(*engine, {.producer = "ridge run", .start = opened});
//   RIDGE_TRY(writer->finish(info));
//
// Valid while the engine lives.
#pragma once

#include "engine/engine.h"
#include "report/chrome_trace.h"

namespace ridge {

struct EngineTraceOptions {
  std::string producer;          // "ridge run"
  TraceClock::time_point start;  // when the engine was opened
  uint64_t left_out = 0;
};
// For TraceInfo::rates.
std::string rates_words(const Rates& rates);

TraceInfo engine_trace_info(const Engine& engine, const EngineTraceOptions& options);

}  // namespace ridge
