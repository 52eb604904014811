// Measures the points of a roofline on this machine: for each scenario prefill and decode at its true depth, as a whole
// and by operator, timed inside the engine, with the roofs measured before and after each of them.
//
// Not for: machines that are not here (roofline_analytic.h), or printing (report/roofline_report.h).
//
//   RooflineOptions options{.engine = {.path = "model.gguf"}, .scenarios = scenarios({}), .repetitions = 3};
//   RooflineReport report = …;
//   RIDGE_TRY(measure_roofline(options, report));        // adds the model and its points
#pragma once

#include <atomic>
#include <functional>

#include "analyze/roofline_points.h"
#include "machine/profile.h"

namespace ridge {

struct RooflineOptions {
  EngineOptions engine;  // context, tokenizer and profile are set here
  std::vector<Scenario> scenarios;
  uint64_t decode_tokens = 32;  // of an answer that are measured, at its middle depth
  int repetitions = 3;
  std::vector<FormatPoint> formats = {};  // rates of one core by type (measure_formats), empty: not known
  const std::atomic<bool>* interrupted = nullptr;
  std::function<void(uint64_t tokens)> progress = nullptr;  // so many tokens more are done
};

// Tokens that measuring evaluates at most, for a progress bar.
uint64_t roofline_work(const RooflineOptions& options);

// Errors: those of Engine::open and evaluate; usage errors for options without a test. When interrupted, what was
// finished.
Result<void> measure_roofline(const RooflineOptions& options, RooflineReport& report);

}  // namespace ridge
