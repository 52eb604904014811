// Tables and JSON of simulated passes over a model, and of traces replayed through policies: `ridge sim`.
//
//   print(host_table(report));       // a row for each policy: tok/s, waiting, bytes, hits
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sim/host_model.h"
#include "sim/policy.h"

namespace ridge {

struct HostRow {
  std::string name, about;
  sim::HostRun run;
};

struct HostReport {
  std::string input, machine;
  uint64_t budget = 0, capacity = 0;  // bytes; capacity: of weights, for a policy
  int threads = 1;
  uint64_t weights = 0, pinned = 0, slot_bytes = 0;
  uint32_t slots = 0;
  double bound_s = 0;  // of the plan, T*
  sim::HostMachine host;
  std::vector<HostRow> rows;
};
std::string host_table(const HostReport& report);
nlohmann::ordered_json host_json(const HostReport& report);

struct ReplayRow {
  std::string name, about;
  sim::ReplayStats stats;
  sim::PolicyKind kind = sim::PolicyKind::classic;
};

struct ReplayReport {
  std::string input, model, train;  // train: what pins and parameters were chosen from, if another trace
  uint64_t capacity = 0, distinct = 0, accesses = 0, passes = 0;
  std::vector<ReplayRow> rows;
};
// Share of the way from the best classic policy of the report to Belady's that this row saves of reading; nothing for
// rows that are classic or ideal themselves, and where there is no way to go. Below 0: it saves less than a classic
// one.
std::optional<double> gap_closed(const ReplayReport& report, const ReplayRow& row);
std::string replay_table(const ReplayReport& report);
nlohmann::ordered_json replay_json(const ReplayReport& report);

}  // namespace ridge
