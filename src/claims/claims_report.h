// The claims as text, JSON, and a page of its own with two charts.
//
//   print(claims_text(evidence));
//   RIDGE_TRY(write_text("claims.html", claims_html(evidence, {.version = "0.1.0", .command = "ridge claims"})));
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "claims/evidence.h"

namespace ridge {

std::string claims_text(const Evidence& evidence);  // at most 100 columns
// {"claims": […], "students": […], "policies": […], "bits": […], "machines": […], "energy_ratios": […]}: all evidence.
nlohmann::ordered_json claims_json(const Evidence& evidence);

struct ClaimsPage {
  std::string version, command;  // that made it
};
std::string claims_html(const Evidence& evidence, const ClaimsPage& page);

}  // namespace ridge
