// Pools of contexts in fresh processes, so that nothing of an earlier one is left over: this program calls itself.
//
//   std::vector<LadderPool> pools = measure_pools({4, 8}, {.model = path, .arguments = {…}}, interrupt_flag());
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "report/ladder_report.h"

namespace ridge::cli {

struct PoolFlags {
  std::string model;
  std::vector<std::string> arguments;  // that every process gets
};

// One process after another. What a process fails with stands in its pool. Ends early when interrupted; a process that
// runs then is interrupted, too, and waited for.
std::vector<LadderPool> measure_pools(const std::vector<uint32_t>& contexts, const PoolFlags& flags,
                                      const std::atomic<bool>& interrupted);

}  // namespace ridge::cli
