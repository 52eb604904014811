// The columns that every kept run begins with, whatever it measured: its name, when, where, and by which ridge.
//
//   Json row = run_columns(report.machine, report.version, report.label);
//   row.update({{"numerics", report.numerics}, …});
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "analyze/bench.h"

namespace ridge {

// A run without a label is called by its time.
inline nlohmann::ordered_json run_columns(const BenchMachine& machine, const std::string& version,
                                          const std::string& label) {
  return {{"label", label.empty() ? machine.measured_at : label},
          {"measured_at", machine.measured_at},
          {"version", version},
          {"cpu", machine.cpu},
          {"isa", machine.isa},
          {"cpus", machine.cpus}};
}

}  // namespace ridge
