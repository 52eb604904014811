#include "memory/streaming_source.h"

#include <gtest/gtest.h>

#include <set>

#include "machine/memory_limits.h"
#include "memory/recording_source.h"
#include "tests/memory/source_fixture.h"

namespace ridge {
namespace {

using test::FaultySyscalls;
using test::kPins;
using test::Model;
using test::ModelBuilder;
using test::StreamingSourceTest;

TEST_F(StreamingSourceTest, SameBytesWhateverIsPinnedHoweverItIsRead) {
  for (const Model* model : {&rows_, &panels_}) {
    for (const auto& [name, pinned] : kPins) {
      for (IoKind io : {IoKind::uring, IoKind::threads, IoKind::buffered}) {
        for (uint32_t slots : {1u, 2u, 3u}) {
          SCOPED_TRACE(name + " pinned, " + std::string(name_of(io)) + ", slots " + std::to_string(slots));
          StreamingSourceOptions o = options(*model, pinned);
          o.io = io;
          o.placement.slots = slots;
          o.keep_gathered = slots == 3;
          auto source = make(o);
          for (int i = 0; i < 3; ++i) {
            pass(*source);
            check_gather(*source);
          }
        }
      }
    }
  }
  EXPECT_EQ(test::cached_pages(folder_ / "model"), 0u);
  EXPECT_EQ(test::cached_pages(folder_ / "model.ridge"), 0u);
}

TEST_F(StreamingSourceTest, PinnedBlocksArePanelsStreamedOnesRows) {
  auto source = make(options(rows_, kPins.at("every second")));
  ASSERT_TRUE(source->begin_pass({}).ok());
  EXPECT_EQ(source->acquire(0).value().pieces()[0].layout, Layout::panels);
  EXPECT_EQ(source->acquire(1).value().pieces()[0].layout, Layout::rows);
  auto packed = make(options(panels_, kPins.at("every second")));
  ASSERT_TRUE(packed->begin_pass({}).ok());
  EXPECT_EQ(packed->acquire(1).value().pieces()[0].layout, Layout::panels);
}

TEST_F(StreamingSourceTest, PinsOfManyChunks) {
  Model large = ModelBuilder(Layout::rows).build(folder_ / "large", 2, 300);  // tensors of up to 7.6 MB
  StreamingSourceOptions o = options(large, [](BlockId b) { return b < 4; });
  o.program = &large.program;
  auto source = make(o);
  for (BlockId b = 0; b < 4; ++b) {
    auto lease = source->acquire(b);
    ASSERT_TRUE(lease.ok());
    std::vector<uint8_t> want;
    for (const Piece& piece : large.program.blocks[b].pieces) {
      PieceView view{Layout::rows, large.bytes.data() + large.program.tensors[piece.tensor].offset};
      std::vector<uint8_t> panels = test::panels_of(large.program, piece, view);
      want.insert(want.end(), panels.begin(), panels.end());
    }
    EXPECT_TRUE(test::block_bytes(large.program, b, lease.value()) == want) << b;
  }
}

TEST_F(StreamingSourceTest, OutOfOrderWorks) {
  auto source = make(options(rows_, kPins.at("none")));
  ASSERT_TRUE(source->begin_pass({}).ok());
  for (BlockId b : {3u, 0u, 12u, 12u, 1u, 11u, 2u, 0u}) check(*source, b);
  // A pass that leaves the head out, then another.
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(source->begin_pass({}).ok());
    for (BlockId b = 0; b < 10; ++b) check(*source, b);
  }
  pass(*source);
}

TEST_F(StreamingSourceTest, TwoLeasesAndTheSameBlockTwice) {
  auto source = make(options(rows_, kPins.at("none")));
  ASSERT_TRUE(source->begin_pass({}).ok());
  Lease first = source->acquire(0).value();
  Lease again = source->acquire(0).value();
  EXPECT_EQ(first.pieces().data(), again.pieces().data());
  Lease second = source->acquire(1).value();
  EXPECT_TRUE(test::block_bytes(rows_.program, 0, first) == expected_[0]);
  first.release();
  EXPECT_FALSE(first.holds(0));
  EXPECT_TRUE(again.holds(0));
  EXPECT_TRUE(test::block_bytes(rows_.program, 0, again) == expected_[0]) << "held by the other lease";
  again = std::move(second);
  EXPECT_TRUE(test::block_bytes(rows_.program, 1, again) == expected_[1]);
  check(*source, 2);
}

// Counts the bytes asked of storage through the statistics: read-ahead neither repeats nor forgets.
TEST_F(StreamingSourceTest, EachStreamedBlockIsReadOncePerPass) {
  auto source = make(options(rows_, kPins.at("every second")));
  uint64_t per_pass = 0;
  for (BlockId b = 1; b < blocks(); b += 2) {
    for (const Piece& p : rows_.program.blocks[b].pieces) {
      const StoredTensor& t = rows_.program.tensors[p.tensor];
      per_pass += read_span(t.stored_offset(p.row_begin), t.stored_bytes(p.row_begin, p.row_end));
    }
  }
  pass(*source);
  uint64_t after_one = source->stats().bytes_read;
  for (int i = 0; i < 4; ++i) pass(*source);
  SourceStats stats = source->stats();
  EXPECT_EQ(stats.bytes_read - after_one, 4 * per_pass);
  // The first pass is over, and the first two blocks of the next one are under way.
  EXPECT_GT(after_one, per_pass);
  EXPECT_LT(after_one, 2 * per_pass);
  EXPECT_EQ(stats.passes, 5u);
  EXPECT_EQ(stats.visits, 5u * blocks());
  EXPECT_EQ(stats.pinned_visits, 5u * 7u);
  EXPECT_GT(stats.load_bytes, 0u);
}

TEST_F(StreamingSourceTest, AStreamedSetThatFitsTheSlotsIsReadOnce) {
  auto source = make(options(rows_, kPins.at("all but two")));
  pass(*source);
  uint64_t once = source->stats().bytes_read;
  for (int i = 0; i < 3; ++i) pass(*source);
  EXPECT_EQ(source->stats().bytes_read, once);
}

// The read of the next visit is submitted before the current one is given back: seen by the engine that records
// offsets.
TEST_F(StreamingSourceTest, TheNextVisitIsReadWhileThisOneIsHeld) {
  struct Recording : FaultySyscalls {
    int64_t read(int fd, void* into, size_t bytes, uint64_t offset, ReadFlavor flavor) override {
      int64_t got = FaultySyscalls::read(fd, into, bytes, offset, flavor);
      std::lock_guard lock(mutex);
      offsets.insert(offset);
      return got;
    }
    bool has(uint64_t offset) {
      std::lock_guard lock(mutex);
      return offsets.count(offset) > 0;
    }
    std::mutex mutex;
    std::set<uint64_t> offsets;
  } calls;
  // Every piece begins on a page of its own.
  Model model = ModelBuilder(Layout::rows).build(folder_ / "wide", 5, 8);
  StreamingSourceOptions o = options(model, kPins.at("none"));
  o.io = IoKind::threads;
  o.syscalls = &calls;
  auto source = make(o);
  auto begin_of = [&](BlockId b) {
    const Piece& p = model.program.blocks[b].pieces[0];
    uint64_t offset = model.program.tensors[p.tensor].stored_offset(p.row_begin);
    return offset - read_lead(offset);
  };
  auto arrives = [&](BlockId b) {
    for (int i = 0; i < 20'000 && !calls.has(begin_of(b)); ++i) ::usleep(500);
    return calls.has(begin_of(b));
  };
  ASSERT_TRUE(source->begin_pass({}).ok());
  for (BlockId b = 0; b < blocks(); ++b) {
    Lease lease = source->acquire(b).value();
    EXPECT_TRUE(arrives((b + 1) % blocks())) << b;  // from the last visit on to the first
    if (b + 2 < blocks()) {
      EXPECT_FALSE(calls.has(begin_of(b + 2))) << "there is no slot for it yet";
    }
    lease.release();
    EXPECT_TRUE(arrives((b + 2) % blocks())) << b;
  }
}

TEST_F(StreamingSourceTest, WantAndNextReady) {
  StreamingSourceOptions o = options(rows_, [](BlockId b) { return b == 6; });
  o.placement.slots = 4;
  auto source = make(o);
  ASSERT_TRUE(source->begin_pass({}).ok());
  std::vector<BlockId> wanted = {9, 7, 5};
  source->want(wanted);
  while (!wanted.empty()) {
    size_t i = source->next_ready(wanted);
    ASSERT_LT(i, wanted.size());
    check(*source, wanted[i]);
    wanted.erase(wanted.begin() + static_cast<int64_t>(i));
  }
  std::vector<BlockId> one_pinned = {12, 6};
  EXPECT_EQ(source->next_ready(one_pinned), 1u);
  pass(*source);
}

TEST_F(StreamingSourceTest, TraceTellsReadsAndWaits) {
  Trace trace;
  StreamingSourceOptions o = options(rows_, kPins.at("every second"));
  o.trace = &trace;
  auto source = make(o);
  pass(*source);
  pass(*source);
  source.reset();
  uint64_t read = 0;
  size_t reads = 0;
  std::map<BlockId, int> held;  // reads less releases
  for (const TraceEvent& e : trace.take()) {
    EXPECT_TRUE(e.lane == Lane::read || e.lane == Lane::wait || e.lane == Lane::release);
    EXPECT_LE(e.begin, e.end);
    if (e.lane == Lane::read) {
      EXPECT_EQ(++held[e.block], 1) << e.block;
    }
    if (e.lane == Lane::release) {
      EXPECT_EQ(--held[e.block], 0) << e.block;
    }
    EXPECT_EQ(e.block % 2, 1u);
    if (e.lane == Lane::read) {
      ++reads;
      read += e.bytes;
    }
  }
  EXPECT_GE(reads, 12u);
  int left = 0;
  for (const auto& [block, count] : held) left += count;
  EXPECT_LE(left, 2);  // slots
  EXPECT_GE(read, 2 * o.placement.streamed_bytes(rows_.program));
}

TEST_F(StreamingSourceTest, RecordingSourceWritesTheOrder) {
  auto inner = make(options(rows_, kPins.at("every second")));
  RecordingSource recorder(*inner);
  pass(recorder);
  ASSERT_TRUE(recorder.begin_pass({}).ok());
  check(recorder, 3);
  check_gather(recorder);
  std::vector<BlockId> want;
  for (BlockId b = 0; b < blocks(); ++b) want.push_back(b);
  want.push_back(3);
  EXPECT_EQ(std::vector<BlockId>(recorder.order().begin(), recorder.order().end()), want);
  ASSERT_EQ(recorder.pass_begins().size(), 2u);
  EXPECT_EQ(recorder.pass_begins()[1], blocks());
  recorder.clear();
  EXPECT_TRUE(recorder.order().empty());
}

TEST_F(StreamingSourceTest, AReadErrorIsToldByTheBlockThatNeedsItAndMayPass) {
  for (IoKind io : {IoKind::uring, IoKind::threads}) {
    FaultySyscalls calls;
    calls.armed = false;
    StreamingSourceOptions o = options(rows_, kPins.at("every second"));
    o.io = io;
    o.syscalls = &calls;
    auto source = make(o);
    pass(*source);
    calls.fault = [](int64_t, int) -> int64_t { return -EIO; };
    calls.armed = true;
    ASSERT_TRUE(source->begin_pass({}).ok());
    bool failed = false;
    for (BlockId b = 0; b < blocks() && !failed; ++b) {
      auto lease = source->acquire(b);
      if (lease.ok()) {
        EXPECT_TRUE(test::block_bytes(rows_.program, b, lease.value()) == expected_[b]);
        continue;
      }
      failed = true;
      EXPECT_EQ(lease.error().code, ErrorCode::io);
      EXPECT_TRUE(lease.error().offset.has_value());
      EXPECT_NE(lease.error().message.find("Input/output error"), std::string::npos) << lease.error().message;
    }
    EXPECT_TRUE(failed);
    std::vector<float> out(96);
    std::vector<uint32_t> row = {5};
    EXPECT_FALSE(source->gather(rows_.embedding, row, Matrix<float>(out.data(), 1, 96)).ok());
    // Read-ahead that failed is told once, then the device is asked again.
    calls.armed = false;
    for (BlockId b = 0; b < blocks(); ++b) (void)source->acquire(b);
    pass(*source);
    check_gather(*source);
  }
}

TEST_F(StreamingSourceTest, FaultsThatHealGiveTheSameBytes) {
  for (IoKind io : {IoKind::uring, IoKind::threads, IoKind::buffered}) {
    FaultySyscalls calls;
    calls.fault = [](int64_t got, int call) -> int64_t {
      switch (call % 7) {
        case 0:
          return -EINTR;
        case 2:
          return -EAGAIN;
        case 4:
          return got > 1 ? (got + 1) / 2 : got;
        default:
          return got;
      }
    };
    StreamingSourceOptions o = options(rows_, kPins.at("every second"));
    o.io = io;
    o.syscalls = &calls;
    auto source = make(o);
    for (int i = 0; i < 2; ++i) {
      pass(*source);
      check_gather(*source);
    }
  }
}

TEST_F(StreamingSourceTest, AFileCutOrReplacedMeanwhileIsBadInput) {
  for (bool cut : {true, false}) {
    test::write_clean_file(folder_ / "model", rows_.bytes);
    auto source = make(options(rows_, kPins.at("none")));
    pass(*source);
    if (cut) {
      ASSERT_EQ(::truncate((folder_ / "model").c_str(), 5000), 0);
    } else {
      test::write_clean_file(folder_ / "new", rows_.bytes);
      test::fs::rename(folder_ / "new", folder_ / "model");
    }
    ASSERT_TRUE(source->begin_pass({}).ok());
    bool failed = false;
    for (BlockId b = 0; b < blocks() && !failed; ++b) {
      auto lease = source->acquire(b);
      if (lease.ok()) continue;
      failed = true;
      EXPECT_EQ(lease.error().code, ErrorCode::bad_input) << lease.error().message;
    }
    EXPECT_TRUE(failed);
  }
}

TEST_F(StreamingSourceTest, AFileThatIsTooShortIsRefused) {
  for (bool pinned : {true, false}) {
    std::vector<uint8_t> shorter(rows_.bytes.begin(), rows_.bytes.end() - 10);
    test::write_clean_file(folder_ / "model", shorter);
    StreamingSourceOptions o = options(rows_, [&](BlockId) { return pinned; });
    auto source = StreamingSource::create(o);
    if (pinned) {
      ASSERT_FALSE(source.ok());
      EXPECT_EQ(source.error().code, ErrorCode::bad_input);
      EXPECT_NE(source.error().message.find("cut short"), std::string::npos) << source.error().message;
    } else {
      ASSERT_TRUE(source.ok());
      auto lease = source.value()->acquire(12);
      ASSERT_FALSE(lease.ok());
      EXPECT_EQ(lease.error().code, ErrorCode::bad_input);
    }
  }
}

TEST_F(StreamingSourceTest, AMissingFileIsBadInput) {
  StreamingSourceOptions o = options(rows_, kPins.at("all"));
  test::fs::remove(folder_ / "model");
  auto source = StreamingSource::create(o);
  ASSERT_FALSE(source.ok());
  EXPECT_EQ(source.error().code, ErrorCode::bad_input);
}

TEST_F(StreamingSourceTest, MoreThanTheSystemHasIsRefused) {
  Program program = rows_.program;
  program.tensors[0].rows = 0xffffffff;
  program.tensors[0].cols = 0x7fffffe0;
  program.blocks.push_back({.name = "monster", .pieces = {{0, 0, 0xffffffff}}});
  StreamingSourceOptions o = options(rows_, kPins.at("all"));
  o.program = &program;
  o.placement.pinned.push_back(1);
  auto source = StreamingSource::create(o);
  ASSERT_FALSE(source.ok());
  EXPECT_EQ(source.error().code, ErrorCode::does_not_fit) << source.error().message;
}

// The account is an upper bound of what the kernel charges, and no wild guess.
TEST_F(StreamingSourceTest, TheAccountHolds) {
  if (test::kSanitized) GTEST_SKIP() << "a sanitizer's own memory is counted, too";
  Model large = ModelBuilder(Layout::rows).build(folder_ / "large", 4, 100);
  for (const char* name : {"all", "every second", "none"}) {
    for (IoKind io : {IoKind::uring, IoKind::threads, IoKind::buffered}) {
      for (bool keep : {false, true}) {
        StreamingSourceOptions o = options(large, kPins.at(name));
        o.program = &large.program;
        o.io = io;
        o.keep_gathered = keep;
        o.huge_pages = true;
        SourceMemory account = StreamingSource::memory(large.program, o.placement, o.gathered, keep);
        ProcessMemory before = process_memory();
        auto source = make(o);
        for (BlockId b = 0; b < large.program.blocks.size(); ++b) ASSERT_TRUE(source->acquire(b).ok());
        ProcessMemory after = process_memory();
        uint64_t growth = after.resident + after.page_tables -
                          std::min(after.resident + after.page_tables, before.resident + before.page_tables);
        EXPECT_LE(growth, account.total()) << name << " " << source->io_description();
        // Freed load buffers and threads are the difference.
        EXPECT_GE(growth + 14 * kMiB, account.total()) << name << " " << source->io_description();
      }
    }
  }
}

TEST_F(StreamingSourceTest, TheAccountCountsWhatIsKept) {
  Placement none = test::placement_of(rows_.program, kPins.at("none"));
  std::vector<TensorId> gathered = {rows_.embedding, rows_.head};
  SourceMemory file = StreamingSource::memory(rows_.program, none, gathered, false);
  SourceMemory kept = StreamingSource::memory(rows_.program, none, gathered, true);
  EXPECT_EQ(file.gathered, 0u);
  EXPECT_GT(kept.gathered, 203u * row_bytes(Type::Q8_0, 96) + 203u * row_bytes(Type::Q4_0, 96));
  EXPECT_EQ(file.pins, 0u);
  EXPECT_GT(file.slots, 2 * rows_.program.largest_block_storage());
  Placement all = test::placement_of(rows_.program, kPins.at("all"));
  SourceMemory pinned = StreamingSource::memory(rows_.program, all, gathered, true);
  EXPECT_GT(pinned.pins, all.pinned_bytes(rows_.program));
  EXPECT_EQ(pinned.slots, 0u);
  EXPECT_LT(pinned.gathered, kept.gathered) << "the tied head is pinned and not held twice";
}

}  // namespace
}  // namespace ridge
