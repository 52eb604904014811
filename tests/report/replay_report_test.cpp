// Which share of the way to Belady a policy closes.
#include <gtest/gtest.h>

#include "report/sim_report.h"

namespace ridge {
namespace {

ReplayRow replay_row(const char* name, uint64_t hit, uint64_t ahead, sim::PolicyKind kind) {
  return {name, "", {.accesses = 100, .hits = hit, .size = 100, .hit_size = hit, .ahead_size = ahead}, kind};
}

TEST(ReplayReport, TheGapIsThatFromTheBestClassicPolicyToTheIdealOne) {
  ReplayReport report;
  report.rows = {replay_row("lru", 10, 0, sim::PolicyKind::classic), replay_row("pin", 40, 0, sim::PolicyKind::classic),
                 replay_row("belady", 80, 0, sim::PolicyKind::ideal),
                 replay_row("importance", 60, 0, sim::PolicyKind::learned),
                 replay_row("ahead", 75, 25, sim::PolicyKind::learned)};
  EXPECT_FALSE(gap_closed(report, report.rows[1]).has_value());
  EXPECT_DOUBLE_EQ(gap_closed(report, report.rows[3]).value(), 0.5);
  EXPECT_DOUBLE_EQ(gap_closed(report, report.rows[4]).value(), 0.25);  // 25 of its hits were read ahead
  EXPECT_NE(replay_table(report).find("25.0%"), std::string::npos);
  report.rows[1].stats.hit_size = 80;
  EXPECT_FALSE(gap_closed(report, report.rows[3]).has_value());  // no way to go
  report.rows.erase(report.rows.begin() + 2);
  EXPECT_FALSE(gap_closed(report, report.rows[2]).has_value());  // Belady's is not there
}

}  // namespace
}  // namespace ridge
