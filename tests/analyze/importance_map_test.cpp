#include "analyze/importance_map.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "tests/temp_folder.h"

namespace ridge {
namespace {

TEST(ImportanceMap, SpearmanIsThatOfTheBooks) {
  const std::vector<double> a = {1, 2, 3, 4, 5};
  EXPECT_DOUBLE_EQ(spearman(a, a), 1);
  EXPECT_DOUBLE_EQ(spearman(a, std::vector<double>{10, 8, 6, 4, 2}), -1);
  EXPECT_DOUBLE_EQ(spearman(a, std::vector<double>{2, 1, 4, 3, 5}), 0.8);  // 1 − 6 · 4 / (5 · 24)
  EXPECT_DOUBLE_EQ(spearman(a, std::vector<double>{7, 7, 7, 7, 7}), 0) << "no order, no correlation";
  EXPECT_NEAR(spearman(std::vector<double>{1, 1, 2, 3}, std::vector<double>{1, 2, 3, 4}), 0.9486832980505138, 1e-12);
}

TEST(ImportanceMap, CountsWhatFires) {
  ActivationStats stats(2);
  std::vector<float> first = {0, 1, -1, -2, 0.5f, -0.0f}, second = {-1, -1, -1, 3, -1, NAN};
  stats.begin_task("a");
  stats.begin_pass();
  stats.gates(Rows(first.data(), 1, 6, 6));
  stats.end_pass(1);
  stats.begin_task("b");
  stats.begin_pass();
  stats.gates(Rows(second.data(), 1, 6, 6));
  stats.end_pass(1);
  ASSERT_EQ(stats.firing().size(), 1u);
  const ActivationStats::Firing& f = stats.firing()[0];
  EXPECT_EQ(f.neurons, (std::vector<uint64_t>{0, 1, 0, 1, 1, 1}));
  EXPECT_EQ(f.groups[0], (std::vector<uint64_t>{1, 0, 1}));
  EXPECT_EQ(f.groups[1], (std::vector<uint64_t>{0, 1, 1}));
}

TEST(ImportanceMap, SumsSquaresByColumn) {
  ActivationStats stats(0);
  std::vector<float> x = {1, 2, 3, -4};
  stats.begin_task("a");
  stats.input(7, Rows(x.data(), 2, 2, 2));
  const auto& squares = stats.squares().at(7);
  EXPECT_EQ(squares.sum2, (std::vector<double>{10, 20}));
  EXPECT_EQ(squares.tokens, 2);
}

TEST(ImportanceMap, APassBeforeAnyTaskIsOurFault) {
  std::vector<float> x = {1, 2};
  const Rows rows(x.data(), 1, 2, 2);
  EXPECT_EXIT(ActivationStats(0).input(7, rows), ::testing::ExitedWithCode(70), "begin_task");
  EXPECT_EXIT(ActivationStats(2).gates(rows), ::testing::ExitedWithCode(70), "begin_task");
  EXPECT_EXIT(ActivationStats(2).end_pass(1), ::testing::ExitedWithCode(70), "begin_task");
}

class MapFile : public ::testing::Test {
 protected:
  std::string path() const { return folder_ / "map.json"; }
  void refuse(const std::string& text, const char* word) {
    std::ofstream(path()) << text;
    auto read = read_map(path());
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.error().code, ErrorCode::bad_input);
    EXPECT_NE(read.error().message.find(word), std::string::npos) << read.error().message;
  }
  test::TempFolder folder_;
};

TEST_F(MapFile, ComesBackAsItWasWritten) {
  ImportanceMap map{.model = "a \"model\"", .fingerprint = 0xfedcba9876543210, .neurons = 64};
  map.tasks = {{"code", 512}, {"chat", 256}};
  map.blocks.push_back({.kind = MapKind::neurons,
                        .name = "blk.1.ffn.3",
                        .layer = 1,
                        .index = 3,
                        .bytes = 4096,
                        .touch = {0.25, 1},
                        .sensitivity = 1e-9});
  map.blocks.push_back({.kind = MapKind::head,
                        .name = "blk.1.head.0",
                        .layer = 1,
                        .index = 0,
                        .bytes = 99,
                        .touch = {1, 1},
                        .sensitivity = 0});
  map.fired = {{}, {1, 2, 3}};
  ASSERT_TRUE(write_map(map, path()).ok());
  auto read = read_map(path());
  ASSERT_TRUE(read.ok()) << read.error().message;
  const ImportanceMap& back = read.value();
  EXPECT_EQ(back.model, map.model);
  EXPECT_EQ(back.fingerprint, map.fingerprint);
  EXPECT_EQ(back.neurons, 64u);
  ASSERT_EQ(back.tasks.size(), 2u);
  EXPECT_EQ(back.tasks[1].name, "chat");
  EXPECT_EQ(back.tasks[1].tokens, 256u);
  ASSERT_EQ(back.blocks.size(), 2u);
  EXPECT_EQ(back.blocks[0].kind, MapKind::neurons);
  EXPECT_EQ(back.blocks[0].touch, map.blocks[0].touch);
  EXPECT_EQ(back.blocks[0].sensitivity, 1e-9);
  EXPECT_EQ(back.blocks[1].name, "blk.1.head.0");
  EXPECT_EQ(back.fired, map.fired);
}

TEST_F(MapFile, WhatIsNoMap) {
  refuse("", "no JSON");
  refuse("[]", "no JSON");
  refuse(R"({"format": "ridge-visits"})", "format");
  refuse(R"({"format": "ridge-importance", "version": 2})", "version");
  const std::string head = R"({"format": "ridge-importance", "version": 1, "fingerprint": "0a", "neurons": 16, )";
  refuse(R"({"format": "ridge-importance", "version": 1, "fingerprint": "x"})", "fingerprint");
  refuse(head + R"("tasks": [], "blocks": [], "fired": []})", "tasks");
  const std::string tasks = head + R"("tasks": [{"name": "a", "tokens": 1}], )";
  refuse(tasks + R"("blocks": [{}], "fired": []})", "block");
  const std::string block = R"({"kind": "head", "name": "b", "layer": 0, "index": 0, "bytes": 1, )";
  refuse(tasks + "\"blocks\": [" + block + R"("touch": [1.5], "sensitivity": 0}], "fired": []})", "chance");
  refuse(tasks + "\"blocks\": [" + block + R"("touch": [], "sensitivity": 0}], "fired": []})", "block");
  refuse(tasks + "\"blocks\": [" + block + R"("touch": [1], "sensitivity": -1}], "fired": []})", "block");
  refuse(tasks + R"("blocks": [], "fired": [[-1]]})", "fired");
}

}  // namespace
}  // namespace ridge
