// Lines over a common axis as a picture of their own: 720 × 400, readable on light and dark ground, without scripts or
// fonts from elsewhere.
//
//   std::string svg = line_chart({.title = "loss", .x = "steps", .y = "nats per token",
//                                 .lines = {{"training", {{100, 2.1}, {200, 1.8}}}}});
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace ridge {

struct ChartLine {
  std::string name;
  std::vector<std::pair<double, double>> points;  // x ascending
};
struct LineChart {
  std::string title, x, y;
  std::vector<ChartLine> lines;  // at most six are told apart by colour
};
std::string line_chart(const LineChart& chart);

}  // namespace ridge
