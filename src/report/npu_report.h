// Text and JSON of passes on a machine of tiers: `ridge sim … --machine`, where the profile has tiers.
//
//   print(npu_text(report));     // a row for each policy; then energy, homes and figures of the last one
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "sim/npu_run.h"

namespace ridge {

struct NpuRow {
  std::string_view name, about;  // of the policy
  sim::NpuRun run;
};

struct NpuReport {
  std::string input;
  const sim::NpuMachine* machine = nullptr;
  const sim::NpuWork* work = nullptr;
  uint64_t positions = 0;  // of the key/value cache; 0: not known, of a trace
  sim::NpuWorth worth = sim::NpuWorth::energy;
  std::vector<NpuRow> rows;  // not empty

  // Share of a dense pass that pins can keep: the room over all weights and keys, C/W.
  double pinned_at_most() const;
};
std::string npu_text(const NpuReport& report);
nlohmann::ordered_json npu_json(const NpuReport& report);

}  // namespace ridge
