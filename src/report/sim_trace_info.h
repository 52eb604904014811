// What the trace of a simulation belongs to: the program and the machine that were simulated, and the bound.
//
//   RIDGE_TRY(file.finish(host_trace_info({.title = "model.gguf", .plan = &plan, .machine = "board"})));
//
// Valid while what it was made from lives.
#pragma once

#include <string>

#include "plan/planner.h"
#include "report/chrome_trace.h"
#include "sim/device_study.h"

namespace ridge {

// Decode passes of a model on a machine profile.
struct HostTrace {
  std::string title;  // the model's file
  const Plan* plan = nullptr;
  std::string machine, policy;  // names; no policy: the plan
  Rates rates;                  // behind the plan's bound
  int threads = 1;
  uint64_t budget_bytes = 0;  // 0: none
  double storage_roof_bytes_per_s = 0;
};
TraceInfo host_trace_info(const HostTrace& trace);

// Passes over a device of contexts, as planned.
struct DeviceTrace {
  std::string title;  // the profile's file
  const sim::ContextDevice* device = nullptr;
  const Program* program = nullptr;  // of the device
  const sim::DevicePlan* plan = nullptr;
};
TraceInfo device_trace_info(const DeviceTrace& trace);

}  // namespace ridge
