// The ladder as the document's table, for people and as JSON.
//
//   print(ladder_table({.model = "model.gguf", .ladder = &ladder, .pools = pools}));
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "analyze/ladder.h"

namespace ridge {

// What a fresh process with so many contexts said about itself.
struct LadderPool {
  uint32_t contexts = 0;  // asked for
  uint32_t loaded = 0;    // fewer where a gate stopped it
  int64_t added_pss = 0;
  double seconds = 0;   // of loading
  std::string failure;  // why there are no figures
};

struct LadderReport {
  std::string model;
  uint32_t tokens = 1;  // that a context has room for
  const Ladder* ladder = nullptr;
  std::vector<LadderPool> pools;
};

std::string ladder_table(const LadderReport& report);
nlohmann::ordered_json ladder_json(const LadderReport& report);
// What a process that measured one pool says of it: read back from its ladder_json().
LadderPool pool_of(const nlohmann::ordered_json& ladder, uint32_t contexts);

// "+12.3 MiB", "−1.50 GiB", "0 B".
std::string signed_bytes(int64_t bytes);

}  // namespace ridge
