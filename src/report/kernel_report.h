// The list of kernels as people and programs want it: what runs here, why nothing better does, and how fast it is.
//
//   std::string text = kernel_table(report, KernelScope::chosen);
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "analyze/kernel_bench.h"

namespace ridge {

// `chosen`: a row per weight type, fits a screen; `all`: a row for every entry of the list.
std::string kernel_table(const KernelReport& report, KernelScope scope);
nlohmann::ordered_json kernel_json(const KernelReport& report);

}  // namespace ridge
