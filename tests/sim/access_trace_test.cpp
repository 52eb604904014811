// Traces: next uses, and the form that other simulators read.
#include "sim/access_trace.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "sim/random.h"

namespace ridge::sim {
namespace {

std::string temporary(const char* name) { return ::testing::TempDir() + "/" + name; }

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(AccessTrace, ACyclicTraceComesBackAfterOnePass) {
  const std::vector<uint64_t> sizes = {10, 20, 30};
  const AccessTrace trace = cyclic_trace(sizes, 4);
  ASSERT_EQ(trace.accesses.size(), 12u);
  EXPECT_EQ(trace.pass_begins, (std::vector<size_t>{0, 3, 6, 9}));
  EXPECT_EQ(trace.distinct(), 3u);
  for (size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(trace.accesses[i].size, sizes[i % 3]);
    EXPECT_EQ(trace.accesses[i].next, i < 9 ? i + 3 : kNever);
  }
}

// Field by field, as struct {u32 time; u64 object; u32 size; i64 next} without padding lies in memory.
TEST(AccessTrace, OracleGeneralHasTwentyFourBytesARecord) {
  AccessTrace trace;
  trace.begin_pass();
  trace.add(0x0102030405060708, 4096);
  trace.add(9, 1);
  trace.begin_pass();
  trace.add(0x0102030405060708, 4096);
  trace.link();
  const std::string path = temporary("three.oracleGeneral");
  ASSERT_TRUE(write_oracle_general(trace, path).ok());
  const std::string bytes = bytes_of(path);
  ASSERT_EQ(bytes.size(), 72u);
  auto number = [&](size_t at, auto value) {
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
  };
  EXPECT_EQ(number(0, uint32_t{}), 0u);
  EXPECT_EQ(number(4, uint64_t{}), 0x0102030405060708u);
  EXPECT_EQ(number(12, uint32_t{}), 4096u);
  EXPECT_EQ(number(16, int64_t{}), 3);  // the third access, counted from one
  EXPECT_EQ(number(24 + 16, int64_t{}), -1);
  EXPECT_EQ(number(48, uint32_t{}), 1u);  // the second pass
}

TEST(AccessTrace, OracleGeneralRoundTrip) {
  Random random(11);
  AccessTrace trace;
  for (int pass = 0; pass < 50; ++pass) {
    trace.begin_pass();
    for (int i = 0; i < 200; ++i) {
      const uint64_t object = random.below(300);
      trace.add(object, 1 + object * 977);
    }
  }
  trace.link();
  const std::string path = temporary("random.oracleGeneral");
  ASSERT_TRUE(write_oracle_general(trace, path).ok());
  auto read = read_oracle_general(path);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read.value().pass_begins, trace.pass_begins);
  ASSERT_EQ(read.value().accesses.size(), trace.accesses.size());
  for (size_t i = 0; i < trace.accesses.size(); ++i) {
    EXPECT_EQ(read.value().accesses[i].object, trace.accesses[i].object);
    EXPECT_EQ(read.value().accesses[i].size, trace.accesses[i].size);
    EXPECT_EQ(read.value().accesses[i].next, trace.accesses[i].next);
  }
}

TEST(AccessTrace, CutFilesAndEmptyObjectsAreRefused) {
  const std::string path = temporary("cut.oracleGeneral");
  ASSERT_TRUE(write_oracle_general(cyclic_trace(std::vector<uint64_t>{1, 2}, 2), path).ok());
  std::filesystem::resize_file(path, 50);
  auto cut = read_oracle_general(path);
  ASSERT_FALSE(cut.ok());
  EXPECT_EQ(cut.error().code, ErrorCode::bad_input);
  EXPECT_EQ(cut.error().offset, 48u);
  EXPECT_NE(cut.error().message.find("cut short"), std::string::npos);

  std::ofstream(path, std::ios::binary) << std::string(24, '\0');
  auto empty = read_oracle_general(path);
  ASSERT_FALSE(empty.ok());
  EXPECT_NE(empty.error().message.find("record 0"), std::string::npos) << empty.error().message;

  EXPECT_FALSE(write_oracle_general(cyclic_trace(std::vector<uint64_t>{uint64_t{1} << 32}, 1), path).ok());
  EXPECT_FALSE(read_oracle_general(temporary("absent.oracleGeneral")).ok());
}

}  // namespace
}  // namespace ridge::sim
