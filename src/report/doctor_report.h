// What `ridge doctor` found, one line per fact, for people and as JSON.
//
//   print(doctor_table(examine(facts)));
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "analyze/doctor.h"

namespace ridge {

std::string doctor_table(std::span<const Finding> findings);
nlohmann::ordered_json doctor_json(std::span<const Finding> findings, const std::optional<Error>& impossible);

}  // namespace ridge
