// How far a run whose steps are partly predicted is from the exact one: step by step, and in the finished pictures.
//
//   std::string text = reference_table(report);
//   nlohmann::ordered_json all = reference_json(report);
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "analyze/image_quality.h"

namespace ridge {

struct ReferenceStep {
  uint32_t step = 0;
  float sigma = 0;                    // before it
  bool computed = false;              // in the run that is judged
  std::vector<double> latent_errors;  // after it, ‖x − x_exact‖ / ‖x_exact‖ by picture
};

struct ReferenceReport {
  std::vector<ReferenceStep> steps;
  std::vector<uint64_t> seeds;  // by picture
  std::vector<ImageQuality> pictures;
  double exact_seconds = 0, seconds = 0;  // of all steps
};

// One error a step, the mean of the pictures; then the table of `ridge compare` for each.
std::string reference_table(const ReferenceReport& report);
nlohmann::ordered_json reference_json(const ReferenceReport& report);

}  // namespace ridge
