// Tables and JSON of a device of contexts: `ridge sim PROFILE.toml` and `ridge plan PROFILE.toml`.
//
//   print(study_table(device, study));      // computed | published, line by line, then what else was tried
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sim/device_study.h"

namespace ridge {

std::string study_table(const sim::ContextDevice& device, const sim::DeviceStudy& study);
nlohmann::ordered_json study_json(const sim::ContextDevice& device, const sim::DeviceStudy& study);

std::string device_plan_table(const sim::ContextDevice& device, const sim::DevicePlan& plan);
nlohmann::ordered_json device_plan_json(const sim::ContextDevice& device, const sim::DevicePlan& plan);

}  // namespace ridge
