// Which task it is, which comes next, and what is pinned for it: tables so small that it can be told by hand.
#include "memory/task_pins.h"

#include <gtest/gtest.h>

namespace ridge::test {
namespace {

// Eight blocks; task 0 uses the first four at nine of ten tokens, task 1 the last four.
TaskTable halves() {
  TaskTable t{.names = {"a", "b"}, .tokens = {1000, 1000}, .touch = {}, .mean = {}};
  t.touch = {{0.9f, 0.9f, 0.9f, 0.9f, 0.1f, 0.1f, 0.1f, 0.1f}, {0.1f, 0.1f, 0.1f, 0.1f, 0.9f, 0.9f, 0.9f, 0.9f}};
  t.fill_mean();
  return t;
}
const std::vector<uint32_t> kOfA = {0, 1, 2, 3}, kOfB = {4, 5, 6, 7};

std::vector<CachedBlock> blocks_of(const std::vector<uint64_t>& bytes) {
  std::vector<CachedBlock> out;
  for (uint32_t b = 0; b < bytes.size(); ++b)
    out.push_back({.block = b, .bytes = bytes[b], .reload = static_cast<double>(bytes[b])});
  return out;
}

TEST(TaskDetector, NamesATaskOnceItIsSustained) {
  const TaskTable table = halves();
  TaskDetector detector(table, std::vector<uint8_t>(8, 1));
  for (uint32_t pass = 1; pass < kTaskSustained; ++pass) EXPECT_FALSE(detector.note_pass(kOfB, 1)) << pass;
  EXPECT_EQ(detector.note_pass(kOfB, 1), std::optional<size_t>(1));
  EXPECT_EQ(detector.task(), std::optional<size_t>(1));
  EXPECT_FALSE(detector.note_pass(kOfB, 1)) << "it has not changed";
}

// A pass now and then that looks like another task does not change it; a few in a row do.
TEST(TaskDetector, HysteresisHoldsAgainstSinglePasses) {
  const TaskTable table = halves();
  TaskDetector detector(table, std::vector<uint8_t>(8, 1));
  for (int pass = 0; pass < 40; ++pass) (void)detector.note_pass(pass % 5 == 4 ? kOfB : kOfA, 1);
  EXPECT_EQ(detector.task(), std::optional<size_t>(0));
  int passes = 0;
  while (!detector.note_pass(kOfB, 1) && passes < 200) ++passes;
  EXPECT_EQ(detector.task(), std::optional<size_t>(1));
  EXPECT_LT(passes, 40);
}

// A prompt pass of many tokens uses every block of either task, and says little.
TEST(TaskDetector, LongPassesThatUseEverythingSayLittle) {
  const TaskTable table = halves();
  TaskDetector detector(table, std::vector<uint8_t>(8, 1));
  const std::vector<uint32_t> all = {0, 1, 2, 3, 4, 5, 6, 7};
  for (int pass = 0; pass < 20; ++pass) EXPECT_FALSE(detector.note_pass(all, 64));
  EXPECT_FALSE(detector.task());
}

TEST(TaskDetector, BlocksThatDoNotCountSayNothing) {
  const TaskTable table = halves();
  TaskDetector detector(table, {0, 0, 0, 0, 0, 0, 0, 0});
  for (int pass = 0; pass < 20; ++pass) EXPECT_FALSE(detector.note_pass(kOfB, 1));
}

TEST(TaskPredictor, LearnsACycleAndStaysWhereNothingSaysOtherwise) {
  TaskPredictor predictor(3);
  EXPECT_FALSE(predictor.next());
  predictor.note_turn(0);
  EXPECT_EQ(predictor.next(), std::optional<size_t>(0));
  for (int round = 0; round < 2; ++round) {
    for (size_t task : {1, 2, 0}) predictor.note_turn(task);
  }
  EXPECT_EQ(predictor.next(), std::optional<size_t>(1));
  predictor.note_turn(1);
  EXPECT_EQ(predictor.next(), std::optional<size_t>(2));
}

TEST(TaskPredictor, OlderTransitionsCountLess) {
  TaskPredictor predictor(2);
  for (int turn = 0; turn < 10; ++turn) predictor.note_turn(static_cast<size_t>(turn % 2));  // 0 1 0 1 …
  for (int turn = 0; turn < 6; ++turn) predictor.note_turn(1);
  EXPECT_EQ(predictor.next(), std::optional<size_t>(1));
}

TEST(TaskPins, PinsHalfOfTheRoomByTouchTimesReloadForEachByte) {
  const TaskTable table = halves();
  TaskPins pins(table, {.mode = TaskMode::named, .task = 1, .counted = std::vector<uint8_t>(8, 1)});
  std::vector<CachedBlock> blocks = blocks_of({1, 1, 1, 1, 1, 1, 1, 1});
  EXPECT_EQ(pins.choose(blocks, 8), kOfB);
  EXPECT_EQ(pins.choose(blocks, 4), (std::vector<uint32_t>{4, 5}));
  blocks[6].reload = 3;
  EXPECT_EQ(pins.choose(blocks, 4), (std::vector<uint32_t>{6, 4}));
  blocks[6].bytes = 9;  // worth a third as much as one of 1, and too large
  EXPECT_EQ(pins.choose(blocks, 8), (std::vector<uint32_t>{4, 5, 7, 0}));
  EXPECT_TRUE(pins.name_task(0));
  EXPECT_FALSE(pins.name_task(0)) << "no change";
  EXPECT_EQ(pins.choose(blocks, 8), kOfA);
}

TEST(TaskPins, ATurnBeginsWithTheTaskThatIsForetold) {
  const TaskTable table = halves();
  TaskPins pins(table, {.mode = TaskMode::foretold, .counted = std::vector<uint8_t>(8, 1)});
  EXPECT_FALSE(pins.begin_turn()) << "nothing was seen";
  for (int turn = 0; turn < 8; ++turn) {
    for (int pass = 0; pass < 12; ++pass) (void)pins.note_pass(turn % 2 == 0 ? kOfA : kOfB, 1);
    EXPECT_EQ(pins.task(), std::optional<size_t>(turn % 2)) << turn;
    const bool changed = pins.begin_turn();
    if (turn >= 4) {
      EXPECT_TRUE(changed);
      EXPECT_EQ(pins.task(), std::optional<size_t>((turn + 1) % 2)) << turn;
    }
  }
}

TEST(TaskTable, ForAnotherProgramIsRefused) {
  Program program;
  program.blocks.resize(2);
  program.steps = {{{.block = 0}}, {}, {{.block = 1}}, {}};
  program.expert_groups = {{.first_step = 0, .experts = 2, .used = 1}};
  CacheTraining training{.tasks = {{"a", 10}, {"b", 10}}, .touch = {{0.25f, 0.5f, 0.75f, 1.0f}}, .where = "map.json"};
  const auto table = task_table(training, program);
  ASSERT_TRUE(table.ok());
  EXPECT_EQ(table.value().touch[1][0], 0.5f);
  EXPECT_EQ(table.value().mean[1], 0.875f);
  training.touch.front().pop_back();
  EXPECT_FALSE(task_table(training, program).ok());
  training.touch.clear();
  EXPECT_FALSE(task_table(training, program).ok());
}

}  // namespace
}  // namespace ridge::test
