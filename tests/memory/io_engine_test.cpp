#include "memory/io_engine.h"

#include <gtest/gtest.h>

#include "memory/slab.h"
#include "tests/memory/fixture.h"

namespace ridge {
namespace {

using test::FaultySyscalls;
using test::TempFolder;
using test::write_clean_file;

constexpr IoKind kKinds[] = {IoKind::uring, IoKind::threads, IoKind::buffered};

class IoEngineTest : public ::testing::TestWithParam<IoKind> {
 protected:
  void SetUp() override {
    path_ = folder_ / "weights";
    bytes_ = test::random_bytes(1'000'003, 9);
    write_clean_file(path_, bytes_);
    slab_ = Slab::allocate(2 * kMiB, {}).value();
  }
  std::unique_ptr<IoEngine> make(Syscalls* calls, uint64_t request_bytes = 64 * 1024, uint32_t depth = 4) {
    auto engine = make_io_engine({.files = {path_},
                                  .buffers = {slab_.span()},
                                  .kind = GetParam(),
                                  .depth = depth,
                                  .request_bytes = request_bytes,
                                  .syscalls = calls});
    EXPECT_TRUE(engine.ok()) << engine.error().message;
    return std::move(engine).value();
  }
  // Reads a range and compares.
  Result<void> read(IoEngine& io, uint64_t offset, uint64_t bytes, uint32_t tag = 1) {
    RIDGE_TRY(io.submit({.file = 0, .offset = offset, .bytes = bytes, .into = slab_.data(), .tag = tag}));
    RIDGE_TRY(io.wait(tag));
    const uint8_t* got = slab_.data() + read_lead(offset);
    EXPECT_TRUE(std::equal(got, got + bytes, bytes_.begin() + static_cast<int64_t>(offset))) << offset << " " << bytes;
    return {};
  }

  TempFolder folder_;
  std::string path_;
  std::vector<uint8_t> bytes_;
  Slab slab_;
};

TEST_P(IoEngineTest, AnyRangeHasTheRightBytes) {
  auto io = make(nullptr);
  struct Range {
    uint64_t offset, bytes;
  };
  for (Range r :
       {Range{0, 1}, {0, 4096}, {4095, 2}, {1, 999'999}, {999'999, 4}, {123'456, 400'000}, {0, 1'000'003}, {7, 0}}) {
    ASSERT_TRUE(read(*io, r.offset, r.bytes).ok());
  }
  EXPECT_GT(io->bytes_read(), 2'400'000u);
  EXPECT_EQ(test::cached_pages(path_), 0u) << io->description();
}

TEST_P(IoEngineTest, ManyWishesUnderManyTags) {
  auto io = make(nullptr, 16 * 1024, 3);
  std::mt19937 random(4);
  for (int round = 0; round < 5; ++round) {
    struct Wish {
      uint64_t offset, bytes, at;
      bool urgent;
    };
    std::vector<Wish> wishes;
    uint64_t at = 0;
    while (true) {
      uint64_t offset = random() % 900'000, bytes = 1 + random() % 60'000;
      if (at + read_span(offset, bytes) > slab_.bytes()) break;
      wishes.push_back({offset, bytes, at, random() % 4 == 0});
      at += read_span(offset, bytes);
    }
    for (size_t i = 0; i < wishes.size(); ++i) {
      ASSERT_TRUE(io->submit({.file = 0,
                              .offset = wishes[i].offset,
                              .bytes = wishes[i].bytes,
                              .into = slab_.data() + wishes[i].at,
                              .tag = static_cast<uint32_t>(i % 5),
                              .urgent = wishes[i].urgent})
                      .ok());
    }
    for (uint32_t tag : {3u, 0u, 4u, 1u, 2u}) {
      ASSERT_TRUE(io->wait(tag).ok());
      EXPECT_TRUE(io->ready(tag));
      for (size_t i = tag; i < wishes.size(); i += 5) {
        const uint8_t* got = slab_.data() + wishes[i].at + read_lead(wishes[i].offset);
        ASSERT_TRUE(std::equal(got, got + wishes[i].bytes, bytes_.begin() + static_cast<int64_t>(wishes[i].offset)));
      }
    }
  }
}

TEST_P(IoEngineTest, ReadyBecomesTrueWithoutWaiting) {
  auto io = make(nullptr, 16 * 1024, 2);
  ASSERT_TRUE(io->submit({.file = 0, .offset = 0, .bytes = 500'000, .into = slab_.data(), .tag = 1}).ok());
  while (!io->ready(1)) ::usleep(100);
  ASSERT_TRUE(io->wait(1).ok());
  EXPECT_TRUE(std::equal(bytes_.begin(), bytes_.begin() + 500'000, slab_.data()));
}

TEST_P(IoEngineTest, MayEndWithReadsUnderWay) {
  auto io = make(nullptr, 16 * 1024, 8);
  ASSERT_TRUE(io->submit({.file = 0, .offset = 0, .bytes = 900'000, .into = slab_.data(), .tag = 1}).ok());
}

TEST_P(IoEngineTest, PastTheEndIsBadInput) {
  auto io = make(nullptr);
  auto past = io->submit({.file = 0, .offset = 1'000'000, .bytes = 4, .into = slab_.data(), .tag = 1});
  ASSERT_FALSE(past.ok());
  EXPECT_EQ(past.error().code, ErrorCode::bad_input);
  EXPECT_NE(past.error().message.find("1,000,003"), std::string::npos);
  EXPECT_FALSE(io->submit({.file = 0, .offset = UINT64_MAX - 10, .bytes = 20, .into = slab_.data(), .tag = 1}).ok());
  EXPECT_TRUE(read(*io, 0, 10).ok());
}

TEST_P(IoEngineTest, ShortReadsAreContinued) {
  FaultySyscalls calls;
  // Three answers in a row without a whole block mean the end of the file, and with several requests under way all of
  // them may fall to one: two at the most.
  int less_than_a_block = 0;
  calls.fault = [&](int64_t got, int call) {
    const int64_t half = (got + 1) / 2;
    const bool shorten =
        call % 2 == 0 && got > 1 && (half >= static_cast<int64_t>(kIoAlign) || less_than_a_block++ < 2);
    return shorten ? half : got;
  };
  auto io = make(&calls);
  EXPECT_TRUE(read(*io, 5, 900'000).ok());
  EXPECT_TRUE(read(*io, 900'000, 100'003).ok());
}

TEST_P(IoEngineTest, InterruptedReadsAreRepeated) {
  FaultySyscalls calls;
  calls.fault = [](int64_t got, int call) -> int64_t { return call % 3 == 0 ? -EINTR : call % 3 == 1 ? -EAGAIN : got; };
  auto io = make(&calls);
  EXPECT_TRUE(read(*io, 1000, 700'000).ok());
}

TEST_P(IoEngineTest, AnEndlessEagainIsAnError) {
  FaultySyscalls calls;
  calls.armed = false;
  auto io = make(&calls);
  calls.fault = [](int64_t, int) -> int64_t { return -EAGAIN; };
  calls.armed = true;
  auto result = read(*io, 0, 1000);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::io);
}

TEST_P(IoEngineTest, EioIsTriedThreeTimes) {
  FaultySyscalls calls;
  calls.armed = false;
  auto io = make(&calls, kMiB);
  calls.fault = [](int64_t got, int call) -> int64_t { return call < 2 ? -EIO : got; };
  calls.armed = true;
  EXPECT_TRUE(read(*io, 0, 300'000).ok());
  EXPECT_EQ(io->bytes_read(), round_up(300'000, kIoAlign)) << "a repeated read is asked for once";
}

TEST_P(IoEngineTest, LastingEioNamesFileOffsetAndCause) {
  FaultySyscalls calls;
  calls.armed = false;
  auto io = make(&calls, 64 * 1024);
  calls.fault = [](int64_t, int) -> int64_t { return -EIO; };
  calls.armed = true;
  auto result = read(*io, 200'000, 300'000);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::io);
  EXPECT_NE(result.error().message.find(path_), std::string::npos);
  EXPECT_NE(result.error().message.find("Input/output error (3 attempts)"), std::string::npos)
      << result.error().message;
  ASSERT_TRUE(result.error().offset.has_value());
  EXPECT_GE(*result.error().offset, 196'608u);
  // The engine goes on once the device does.
  calls.armed = false;
  EXPECT_TRUE(read(*io, 200'000, 300'000).ok());
}

TEST_P(IoEngineTest, OtherErrorsAreNotRepeated) {
  FaultySyscalls calls;
  std::atomic<int> count{0};
  calls.armed = false;
  auto io = make(&calls, kMiB);
  calls.fault = [&](int64_t, int) -> int64_t { return ++count, -EBADF; };
  calls.armed = true;
  EXPECT_FALSE(read(*io, 0, 10'000).ok());
  EXPECT_EQ(count, 1);
}

TEST_P(IoEngineTest, AnEarlyEndIsAFileThatShrank) {
  // Three ways to see it: nothing, a part of a block again and again, and the real thing.
  for (int way : {0, 1, 2}) {
    write_clean_file(path_, bytes_);
    FaultySyscalls calls;
    calls.armed = false;
    auto io = make(&calls, kMiB);
    if (way == 0) calls.fault = [](int64_t, int) -> int64_t { return 0; };
    if (way == 1)
      calls.fault = [](int64_t got, int call) -> int64_t { return call < 3 ? std::min<int64_t>(got, 100) : 0; };
    if (way == 2) {
      ASSERT_EQ(::truncate(path_.c_str(), 5000), 0);
    }
    calls.armed = true;
    auto result = read(*io, 0, 100'000);
    ASSERT_FALSE(result.ok()) << way;
    EXPECT_EQ(result.error().code, ErrorCode::bad_input);
    EXPECT_NE(result.error().message.find("shrank while running"), std::string::npos) << result.error().message;
  }
}

TEST_P(IoEngineTest, AFileReplacedMeanwhileIsFound) {
  auto io = make(nullptr);
  EXPECT_TRUE(read(*io, 0, 1000).ok());
  write_clean_file(path_ + ".new", bytes_);
  test::fs::rename(path_ + ".new", path_);
  auto result = read(*io, 0, 1000);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::bad_input);
  EXPECT_NE(result.error().message.find("replaced"), std::string::npos);
}

TEST_P(IoEngineTest, RefusedDirectStillReads) {
  for (bool at_open : {true, false}) {
    FaultySyscalls calls;
    calls.refuse_direct_open = at_open;
    calls.refuse_direct_read = !at_open;
    calls.refuse_dont_cache = at_open;
    auto io = make(&calls);
    EXPECT_TRUE(read(*io, 3, 999'000).ok());
    EXPECT_EQ(io->description().find("io_uring,"), std::string::npos) << io->description();
    EXPECT_EQ(test::cached_pages(path_), 0u) << io->description();
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, IoEngineTest, ::testing::ValuesIn(kKinds),
                         [](const auto& kind) { return std::string(name_of(kind.param)); });

class UringLadder : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = folder_ / "weights";
    bytes_ = test::random_bytes(300'000, 3);
    write_clean_file(path_, bytes_);
    slab_ = Slab::allocate(2 * kMiB, {}).value();
    auto io = make_io_engine({.files = {path_}, .buffers = {slab_.span()}, .kind = IoKind::uring});
    ASSERT_TRUE(io.ok());
    if (io.value()->description().find("io_uring, O_DIRECT") != 0)
      GTEST_SKIP() << "no io_uring here: " << io.value()->description();
  }
  // The description of an engine that proved to read rightly.
  std::string with(FaultySyscalls& calls, IoKind kind) {
    auto io = make_io_engine({.files = {path_}, .buffers = {slab_.span()}, .kind = kind, .syscalls = &calls});
    EXPECT_TRUE(io.ok());
    EXPECT_TRUE(io.value()->submit({.file = 0, .offset = 1, .bytes = 299'999, .into = slab_.data(), .tag = 0}).ok());
    EXPECT_TRUE(io.value()->wait(0).ok());
    EXPECT_TRUE(std::equal(bytes_.begin() + 1, bytes_.end(), slab_.data() + 1));
    return io.value()->description();
  }

  TempFolder folder_;
  std::string path_;
  std::vector<uint8_t> bytes_;
  Slab slab_;
};

TEST_F(UringLadder, IsTheAutomaticChoice) {
  FaultySyscalls calls;
  EXPECT_EQ(with(calls, IoKind::automatic).find("io_uring, O_DIRECT, registered buffers, 32 requests of 256 KiB"), 0u);
}

TEST_F(UringLadder, NotPermittedOrUnknownFallsToThreads) {
  for (int error : {-EPERM, -ENOSYS, -ENOMEM}) {
    FaultySyscalls calls;
    calls.setup_error = error;
    std::string text = with(calls, IoKind::automatic);
    EXPECT_EQ(text.find("pread, O_DIRECT, 4 threads"), 0u) << text;
    EXPECT_NE(text.find(std::strerror(-error)), std::string::npos) << text;
  }
}

TEST_F(UringLadder, UnregisteredBuffersAndFiles) {
  FaultySyscalls calls;
  calls.buffers_error = -ENOMEM;
  std::string text = with(calls, IoKind::uring);
  EXPECT_EQ(text.find("io_uring, O_DIRECT, unregistered buffers"), 0u) << text;
  EXPECT_NE(text.find("not registered"), std::string::npos);
  calls.buffers_error = 0;
  calls.files_error = -EINVAL;
  text = with(calls, IoKind::uring);
  EXPECT_NE(text.find("files are not registered"), std::string::npos) << text;
}

TEST_F(UringLadder, ARefusedSubmissionIsTriedAgain) {
  FaultySyscalls calls;
  calls.submit_refusals = 5;
  EXPECT_EQ(with(calls, IoKind::uring).find("io_uring"), 0u);
}

TEST_F(UringLadder, EndlessRefusalIsAnError) {
  FaultySyscalls calls;
  calls.submit_refusals = 1 << 30;
  auto io = make_io_engine({.files = {path_}, .buffers = {slab_.span()}, .kind = IoKind::uring, .syscalls = &calls});
  ASSERT_TRUE(io.ok());
  ASSERT_TRUE(io.value()->submit({.file = 0, .offset = 1, .bytes = 1000, .into = slab_.data(), .tag = 0}).ok());
  auto result = io.value()->wait(0);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::io);
}

TEST(IoKindNames, RoundTrip) {
  for (IoKind kind : {IoKind::automatic, IoKind::uring, IoKind::threads, IoKind::buffered}) {
    EXPECT_EQ(parse_io_kind(name_of(kind)).value(), kind);
  }
  auto wrong = parse_io_kind("mmap");
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().code, ErrorCode::usage);
}

TEST(IoEngineMake, AMissingFileIsBadInput) {
  auto io = make_io_engine({.files = {"/nonexistent/weights"}});
  ASSERT_FALSE(io.ok());
  EXPECT_EQ(io.error().code, ErrorCode::bad_input);
}

}  // namespace
}  // namespace ridge
