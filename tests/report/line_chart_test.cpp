// Charts of lines: what stands at the axes.
#include "report/line_chart.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <regex>
#include <string>
#include <vector>

namespace ridge::test {
namespace {

// The words beside one axis: those of y end at it, those of x are centred under it.
std::vector<std::string> ticks(const std::string& svg, const std::string& anchor) {
  const std::regex form("<text class=\"faint\" x=\"[0-9.]+\" y=\"[0-9.]+\" text-anchor=\"" + anchor +
                        "\">([^<]*)</text>");
  std::vector<std::string> out;
  for (std::sregex_iterator it(svg.begin(), svg.end(), form), end; it != end; ++it) out.push_back((*it)[1]);
  return out;
}

using Words = std::vector<std::string>;

TEST(LineChart, TicksAreRoundAndEncloseThePoints) {
  const std::string svg =
      line_chart({.title = "loss", .x = "steps", .y = "nats", .lines = {{"held out", {{7, 1.183}, {448, 2.871}}}}});
  EXPECT_EQ(ticks(svg, "middle"), (Words{"0", "100", "200", "300", "400", "500"}));
  EXPECT_EQ(ticks(svg, "end"), (Words{"1", "1.5", "2", "2.5", "3", "steps"}));
}

TEST(LineChart, AcrossZeroThereIsAZero) {
  const std::string svg = line_chart({.title = "", .x = "x", .y = "", .lines = {{"", {{0, -0.3}, {1, 0.2}}}}});
  const Words y = ticks(svg, "end");
  EXPECT_NE(std::find(y.begin(), y.end(), "0"), y.end());
}

TEST(LineChart, OnePointNoPointAndWhatIsNoNumber) {
  for (const std::vector<std::pair<double, double>>& points : {std::vector<std::pair<double, double>>{},
                                                               {{3, 5}},
                                                               {{0, 0}},
                                                               {{1, NAN}, {2, INFINITY}},
                                                               {{1, 1e300}, {2, 1e-300}}}) {
    const std::string svg = line_chart({.title = "t", .x = "x", .y = "y", .lines = {{"a", points}}});
    EXPECT_EQ(svg.find("nan"), std::string::npos);
    EXPECT_EQ(svg.find("inf"), std::string::npos);
    EXPECT_LE(ticks(svg, "middle").size(), 8u);
    EXPECT_GE(ticks(svg, "middle").size(), 2u);
  }
}

}  // namespace
}  // namespace ridge::test
