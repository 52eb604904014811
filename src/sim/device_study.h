// The questions that one asks of a device of contexts, each answered by a run of the event simulator: the document's
// table line by line beside its published figures, and what the document did not try.
//
//   DeviceStudy study = study_device(device, {.computed_steps = 13});
//   for (const StudyRow& row : study.document) …        // "lifecycles of an image": 1092, published 1092
//   for (const StudyRun& run : study.runs) …            // "read ahead, 3 contexts": s per image, MiB
//
// Not for: printing (report/device_report.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/context_device.h"
#include "sim/ladder_fit.h"
#include "sim/lifecycle.h"

namespace ridge::sim {

struct StudyOptions {
  uint32_t computed_steps = 0;  // passes of an image
  uint32_t merge = 1;           // neighbours fused into one context
};

// A figure, and what the document says of it.
struct StudyRow {
  std::string what, unit;
  double computed = 0;
  std::optional<double> published;
  std::string note;
};

// One way to walk through the contexts.
struct StudyRun {
  std::string group, what;
  LifecycleOptions options;
  double image_s = 0;
  double saved_s = 0;   // against load, run, release
  double waited_s = 0;  // of the accelerator and the host, per image
  double added_mib = 0;
  std::optional<double> interval_mib;  // of that, 95 %
  double hit_ratio = 0;
  bool passes_gate = false;
};

struct DeviceStudy {
  std::vector<StudyRow> document;  // of the contexts as they were measured
  std::vector<StudyRun> runs;      // of the contexts, merged if asked for
  LadderFit fit;
  double gate_mib = 0;
  double bound_s = 0;         // of an image that keeps nothing and waits for nothing
  double locked_bound_s = 0;  // with a driver that cannot initialise while it runs
  double fixed_s = 0;         // of a lifecycle, whatever the size
  ContextDevice device;       // merged, if asked for
};

DeviceStudy study_device(const ContextDevice& device, const StudyOptions& options);

// One run of a study, for others that choose among runs (a plan).
StudyRun study_run(const ContextDevice& device, const LadderFit& fit, double gate_mib, const LifecycleOptions& options);

// What a plan for this device is: the fastest run within the memory, and the sentences why.
struct DevicePlan {
  StudyRun best;
  std::vector<StudyRun> considered;  // by time
  double budget_mib = 0;
  std::vector<std::string> pinned;  // names
  std::vector<std::string> reasons;
};
struct DevicePlanOptions {
  uint32_t computed_steps = 0, merge = 1;
  std::optional<double> budget_mib;  // of added memory; nothing: the gate
  DriverLock lock = DriverLock::none;
};
// does_not_fit if not even one context does.
Result<DevicePlan> plan_device(const ContextDevice& device, const DevicePlanOptions& options);

}  // namespace ridge::sim
