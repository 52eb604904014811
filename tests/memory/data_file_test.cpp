#include "memory/data_file.h"

#include <gtest/gtest.h>

#include "memory/slab.h"
#include "tests/memory/fixture.h"

namespace ridge {
namespace {

using test::FaultySyscalls;
using test::TempFolder;
using test::write_clean_file;

class DataFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = folder_ / "weights";
    bytes_ = test::random_bytes(3 * 4096 + 1234, 5);
    write_clean_file(path_, bytes_);
  }
  // The whole file in reads of 8 KiB.
  std::vector<uint8_t> read_all(const DataFile& file) {
    Slab slab = Slab::allocate(8192, {}).value();
    std::vector<uint8_t> all;
    for (uint64_t at = 0;; at += 8192) {
      int64_t got = file.read(slab.data(), 8192, at);
      EXPECT_GE(got, 0);
      if (got <= 0) return all;
      all.insert(all.end(), slab.data(), slab.data() + got);
    }
  }

  TempFolder folder_;
  std::string path_;
  std::vector<uint8_t> bytes_;
};

TEST_F(DataFileTest, DirectReadsTheTailOfAnOddSize) {
  auto file = DataFile::open(path_, {});
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file.value().bytes(), bytes_.size());
  EXPECT_EQ(read_all(file.value()), bytes_);
  if (!file.value().direct()) GTEST_SKIP() << "no O_DIRECT in the temporary folder: " << file.value().fallback_reason();
  EXPECT_TRUE(file.value().fallback_reason().empty());
  EXPECT_EQ(test::cached_pages(path_), 0u);
}

TEST_F(DataFileTest, BufferedLeavesThePageCacheClean) {
  for (bool dont_cache : {true, false}) {
    FaultySyscalls calls;
    calls.refuse_dont_cache = !dont_cache;
    auto file = DataFile::open(path_, {.direct = false, .syscalls = &calls});
    ASSERT_TRUE(file.ok());
    EXPECT_FALSE(file.value().direct());
    EXPECT_EQ(read_all(file.value()), bytes_);
    EXPECT_EQ(test::cached_pages(path_), 0u) << file.value().mode_name();
  }
}

TEST_F(DataFileTest, RefusedDirectFallsBackWithAReason) {
  for (bool at_open : {true, false}) {
    FaultySyscalls calls;
    calls.refuse_direct_open = at_open;
    calls.refuse_direct_read = !at_open;
    auto file = DataFile::open(path_, {.direct = true, .syscalls = &calls});
    ASSERT_TRUE(file.ok()) << file.error().message;
    EXPECT_FALSE(file.value().direct());
    EXPECT_NE(file.value().fallback_reason().find("O_DIRECT is refused"), std::string::npos);
    EXPECT_NE(file.value().fallback_reason().find(at_open ? "when opened" : "first read"), std::string::npos);
    EXPECT_EQ(read_all(file.value()), bytes_);
  }
}

TEST_F(DataFileTest, AnEndlessEagainAtTheProbeIsARefusal) {
  FaultySyscalls calls;
  calls.fault = [](int64_t, int) -> int64_t { return -EAGAIN; };
  auto file = DataFile::open(path_, {.direct = true, .syscalls = &calls});
  ASSERT_TRUE(file.ok());
  EXPECT_FALSE(file.value().direct());
}

TEST_F(DataFileTest, LargeDirectBlocksFallBack) {
  struct LargeBlocks : FaultySyscalls {
    DirectAlignment direct_alignment(int) override { return {.known = true, .memory = 512, .offset = offset}; }
    uint32_t offset = 0;
  } calls;
  for (uint32_t offset : {0u, 65536u}) {
    calls.offset = offset;
    auto file = DataFile::open(path_, {.direct = true, .syscalls = &calls});
    ASSERT_TRUE(file.ok());
    EXPECT_FALSE(file.value().direct()) << offset;
    EXPECT_EQ(read_all(file.value()), bytes_);
  }
}

TEST_F(DataFileTest, WhatCannotBeOpenedIsBadInput) {
  auto missing = DataFile::open(folder_ / "missing", {});
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::bad_input);
  EXPECT_NE(missing.error().message.find("no such file"), std::string::npos);
  auto folder = DataFile::open(folder_ / "", {});
  ASSERT_FALSE(folder.ok());
}

TEST_F(DataFileTest, AnEmptyFileIsAFile) {
  write_clean_file(path_, {});
  auto file = DataFile::open(path_, {});
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(read_all(file.value()).size(), 0u);
}

TEST_F(DataFileTest, VerifyFindsWhatHappenedToAFile) {
  auto file = DataFile::open(path_, {});
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(file.value().verify_unchanged().ok());

  // Removed: whoever has it open still has it.
  ASSERT_EQ(std::rename(path_.c_str(), (folder_ / "away").c_str()), 0);
  EXPECT_TRUE(file.value().verify_unchanged().ok());
  // Replaced.
  write_clean_file(path_, bytes_);
  auto replaced = file.value().verify_unchanged();
  ASSERT_FALSE(replaced.ok());
  EXPECT_EQ(replaced.error().code, ErrorCode::bad_input);
  EXPECT_NE(replaced.error().message.find("replaced"), std::string::npos);

  auto again = DataFile::open(path_, {});
  ASSERT_EQ(::truncate(path_.c_str(), 4096), 0);
  auto cut = again.value().verify_unchanged();
  ASSERT_FALSE(cut.ok());
  EXPECT_NE(cut.error().message.find("shrank"), std::string::npos);

  auto third = DataFile::open(path_, {});
  timespec times[2] = {{1, 2}, {3, 4}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path_.c_str(), times, 0), 0);
  auto written = third.value().verify_unchanged();
  ASSERT_FALSE(written.ok());
  EXPECT_NE(written.error().message.find("written"), std::string::npos);
}

}  // namespace
}  // namespace ridge
