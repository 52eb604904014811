// The file of `ridge run --record`, there and back, and what is no such file.
#include "sim/recorded_trace.h"

#include <gtest/gtest.h>

#include <fstream>

namespace ridge::sim {
namespace {

TEST(RecordedTrace, RoundTrip) {
  Program program;
  for (uint64_t i = 0; i < 3; ++i) {
    program.blocks.push_back({.name = "blk.\"" + std::to_string(i), .storage_bytes = 10 + i, .memory_bytes = 20 + i});
  }
  const std::vector<BlockId> order = {0, 1, 2, 0, 2};
  const std::vector<size_t> begins = {0, 3};
  const std::string path = ::testing::TempDir() + "/visits.json";
  ASSERT_TRUE(write_recorded(program, order, begins, "a \"model\"", path).ok());
  auto read = read_recorded(path);
  ASSERT_TRUE(read.ok()) << read.error().message;
  const RecordedTrace& t = read.value();
  EXPECT_EQ(t.model, "a \"model\"");
  ASSERT_EQ(t.blocks.size(), 3u);
  EXPECT_EQ(t.blocks[1].name, "blk.\"1");
  EXPECT_EQ(t.blocks[2].storage_bytes, 12u);
  EXPECT_EQ(t.trace.pass_begins, begins);
  ASSERT_EQ(t.trace.accesses.size(), 5u);
  EXPECT_EQ(t.trace.accesses[4].object, 2u);
  EXPECT_EQ(t.trace.accesses[4].size, 22u);
  EXPECT_EQ(t.trace.accesses[0].next, 3u);
}

TEST(RecordedTrace, RefusesOtherFiles) {
  const std::string path = ::testing::TempDir() + "/other.json";
  auto refused = [&](const char* text, const char* part) {
    std::ofstream(path) << text;
    auto read = read_recorded(path);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.error().code, ErrorCode::bad_input);
    EXPECT_NE(read.error().message.find(part), std::string::npos) << read.error().message;
  };
  refused("", "no JSON object");
  refused("[1]", "no JSON object");
  refused("{}", "'format'");
  refused(R"({"format": 7})", "'format'");
  refused(R"({"format": "ridge-visits", "version": 2})", "version");
  refused(R"({"format": "ridge-visits", "version": 1})", "'blocks'");
  refused(R"({"format": "ridge-visits", "version": 1, "blocks": [{"name": "b"}]})", "block 0");
  refused(
      R"({"format": "ridge-visits", "version": 1, "blocks": [{"name": "b", "storage_bytes": 0, "memory_bytes": 1}]})",
      "block 0");
  const std::string head =
      R"({"format": "ridge-visits", "version": 1, "blocks": [{"name": "b", "storage_bytes": 1, "memory_bytes": 1}])";
  refused((head + "}").c_str(), "'passes'");
  refused((head + R"(, "passes": [0]})").c_str(), "a pass is no list");
  refused((head + R"(, "passes": [[0, 1]]})").c_str(), "pass 0 visits a block");
  refused((head + R"(, "passes": [[-1]]})").c_str(), "pass 0 visits a block");
}

}  // namespace
}  // namespace ridge::sim
