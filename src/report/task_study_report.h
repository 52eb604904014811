// The table and JSON of `ridge sim --map`.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/task_study.h"

namespace ridge {

struct TaskStudyReport {
  std::string input, map;
  uint64_t capacity = 0;  // bytes
  uint32_t turn = 0;      // passes
  struct Order {
    sim::TurnOrder order = sim::TurnOrder::in_turn;
    std::vector<sim::TaskStudyRow> rows;
  };
  std::vector<Order> orders;
};
std::string task_study_table(const TaskStudyReport& report);
nlohmann::ordered_json task_study_json(const TaskStudyReport& report);

}  // namespace ridge
