// A curve of speed over the budget as a picture: in the terminal, and as SVG.
//
//   print(terminal_chart(curve, {.marks = {{"budget", 300 * kMiB}}, .utf8 = true}));
//   std::string svg = svg_chart(curve, {.title = "model.gguf", .marks = {{"budget", 300 * kMiB}}});
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/curve.h"

namespace ridge {

struct ChartMark {
  std::string name;
  uint64_t budget = 0;
};

struct ChartOptions {
  std::string title;
  std::vector<ChartMark> marks;  // places on the axis of budgets; those outside of the curve are left out
  bool utf8 = true;              // terminal: eighths of a character, otherwise '#'
  int columns = 56, rows = 10;   // terminal: of the plot itself
};

// Lines of at most columns + 12 characters, with axes and a line for each mark.
std::string terminal_chart(const BudgetCurve& curve, const ChartOptions& options);
// A picture of its own, 720 × 400, readable on light and dark ground, without scripts or fonts from elsewhere.
std::string svg_chart(const BudgetCurve& curve, const ChartOptions& options);

}  // namespace ridge
