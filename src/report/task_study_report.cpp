#include "report/task_study_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/units.h"

namespace ridge {
namespace {

double share(uint64_t part, uint64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

const char* words(sim::TurnOrder order) {
  return order == sim::TurnOrder::in_turn ? "each in its turn" : "in any order";
}

}  // namespace

std::string task_study_table(const TaskStudyReport& report) {
  std::string text = fmt::format("a cache of {} for experts or bundles alone, turns of {}, trained by {}\n",
                                 format_bytes(report.capacity), counted(report.turn, "pass", "passes"), report.map);
  for (const TaskStudyReport::Order& order : report.orders) {
    text += fmt::format("\ntasks {}, {}\n  {:<10} {:>10} {:>12} {:>14} {:>8} {:>10}  {}\n", words(order.order),
                        counted(order.rows.front().passes, "pass", "passes"), "", "hit bytes", "read", "of these pins",
                        "changes", "own pins", "");
    for (const sim::TaskStudyRow& row : order.rows) {
      text += fmt::format("  {:<10} {:>8.1f} % {:>12} {:>14} {:>8} {:>8.1f} %  {}\n", row.name,
                          100 * share(row.hit_size, row.size), format_bytes(row.read()), format_bytes(row.pin_size),
                          row.changes, 100 * share(row.right, row.passes), row.about);
    }
  }
  return text;
}

nlohmann::ordered_json task_study_json(const TaskStudyReport& report) {
  nlohmann::ordered_json orders = nlohmann::ordered_json::array();
  for (const TaskStudyReport::Order& order : report.orders) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const sim::TaskStudyRow& row : order.rows) {
      rows.push_back({{"name", row.name},
                      {"size", row.size},
                      {"hit_size", row.hit_size},
                      {"read_size", row.read()},
                      {"pin_size", row.pin_size},
                      {"changes", row.changes},
                      {"passes", row.passes},
                      {"right_passes", row.right}});
    }
    orders.push_back({{"order", order.order == sim::TurnOrder::in_turn ? "in_turn" : "at_random"}, {"rows", rows}});
  }
  return {{"input", report.input},
          {"map", report.map},
          {"capacity", report.capacity},
          {"turn", report.turn},
          {"orders", orders}};
}

}  // namespace ridge
