// What it is worth to know the task, on traces whose tasks use different blocks.
#include "sim/task_study.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace ridge::sim::test {
namespace {

// Sixteen blocks of 10 bytes: task t uses blocks 8t … 8t + 7, all of them in every pass, and the trace knows a block
// that the table does not.
AccessTrace trace_of(uint32_t task, size_t passes) {
  AccessTrace trace;
  for (size_t pass = 0; pass < passes; ++pass) {
    trace.begin_pass();
    trace.add(16, 1000);
    for (uint32_t b = 8 * task; b < 8 * task + 8; ++b) trace.add(b, 10);
  }
  trace.link();
  return trace;
}

TaskTable halves() {
  TaskTable t{.names = {"a", "b"}, .tokens = {100, 100}, .touch = {}, .mean = {}};
  for (size_t task = 0; task < 2; ++task) {
    std::vector<float> touch(17, 0.02f);
    touch[16] = 0;
    for (size_t b = 8 * task; b < 8 * task + 8; ++b) touch[b] = 1;
    t.touch.push_back(touch);
  }
  t.fill_mean();
  return t;
}

std::map<std::string, TaskStudyRow> study(const TaskStudyOptions& options) {
  const AccessTrace a = trace_of(0, 400), b = trace_of(1, 400);
  const TaskTrace traces[] = {{0, &a}, {1, &b}};
  std::map<std::string, TaskStudyRow> rows;
  for (const TaskStudyRow& row : study_tasks(traces, halves(), options)) rows.emplace(row.name, row);
  return rows;
}

TEST(TaskStudy, LabelsAreRightAndForesightLearnsACycle) {
  const auto rows = study({.capacity = 80, .turn = 40, .order = TurnOrder::in_turn, .bytes_per_pass = 1000});
  ASSERT_EQ(rows.size(), 6u);
  const TaskStudyRow& labels = rows.at("labels");
  EXPECT_EQ(labels.right, labels.passes);
  EXPECT_EQ(labels.passes, 800u);
  EXPECT_EQ(labels.size, 800u * 80) << "the block that the table does not know is left out";
  EXPECT_EQ(rows.at("mean").right, 0u);
  EXPECT_GT(rows.at("detected").right, rows.at("detected").passes / 2);
  EXPECT_LT(rows.at("detected").right, rows.at("detected").passes);
  EXPECT_GT(rows.at("foretold").right, rows.at("detected").right);
  EXPECT_EQ(rows.at("detected").changes, 20u) << "once in each turn";
  for (const auto& [name, row] : rows) EXPECT_LE(row.hit_size, row.size) << name;
  EXPECT_LE(labels.read(), rows.at("mean").read());
}

TEST(TaskStudy, SameFiguresEachTime) {
  const TaskStudyOptions options{.capacity = 60, .turn = 10, .order = TurnOrder::at_random};
  const auto first = study(options), second = study(options);
  for (const auto& [name, row] : first) EXPECT_EQ(row.hit_size, second.at(name).hit_size) << name;
}

// Two blocks of a pass are all that may be read before it: four pins come over two passes, and not at once.
TEST(TaskStudy, PinsComeWithinTheBoundOfAPass) {
  const TaskStudyOptions bounded{.capacity = 80, .turn = 400, .order = TurnOrder::in_turn, .bytes_per_pass = 20};
  EXPECT_LE(study(bounded).at("labels").pin_size, 80u);
  EXPECT_GT(study(bounded).at("labels").pin_size, 0u);
}

}  // namespace
}  // namespace ridge::sim::test
