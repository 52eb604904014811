// The ladder on an executor and a memory that are made up: where it stops, what it leaves, what it foresees.
#include "analyze/ladder.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "base/units.h"

namespace ridge {
namespace {

// A board: each context takes its weights and as much again of overhead, and everything beyond what is available is
// swapped.
class Board final : public Executor {
 public:
  explicit Board(uint32_t layers) {
    for (uint32_t l = 0; l < layers; ++l) {
      add(fmt::format("blk.{}.attn/0", l), 10 * kMiB);
      add(fmt::format("blk.{}.ffn/0", l), 30 * kMiB);
    }
    prepared_.resize(program_.blocks.size());
    costs_.resize(program_.blocks.size());
  }

  uint64_t needs(BlockId b) const override { return 2 * program_.blocks[b].memory_bytes; }
  Result<void> prepare(BlockId b) override {
    if (b == fails_at) return io_error("the device is gone");
    prepared_[b] = true;
    held_ += needs(b);
    costs_[b] = {.weight_bytes = program_.blocks[b].memory_bytes,
                 .overhead_bytes = program_.blocks[b].memory_bytes,
                 .load_s = 0.5,
                 .init_s = 0.25};
    return {};
  }
  bool prepared(BlockId b) const override { return prepared_[b]; }
  Matrix<float> input(const Slice&) override { return {}; }
  Result<Matrix<const float>> run(const Slice&, size_t) override { return Matrix<const float>(); }
  void release(BlockId b) override {
    if (!prepared_[b]) return;
    prepared_[b] = false;
    held_ -= needs(b);
    costs_[b].release_s = 0.125;
  }
  const Lifecycle& lifecycle(BlockId b) const override { return costs_[b]; }
  const Program& program() const override { return program_; }
  std::string description() const override { return "a board"; }

  MemoryState measure() {
    MemoryState s;
    s.pss = 5 * kMiB + held_ + leaked;
    const uint64_t swapped = held_ > available ? held_ - available : 0;
    s.available = available - (held_ - swapped);
    s.swap_used = 3 * kMiB + swapped + held_swap;
    s.mappings = 20 + held_ / (20 * kMiB);
    s.mapped_bytes = 50 * kMiB + held_;
    if (limit) s.cgroup = {.charged = held_, .left = *limit - held_, .reason = "cgroup /box"};
    return s;
  }
  uint64_t held() const { return held_; }

  uint64_t available = 8 * kGiB, leaked = 0, held_swap = 0;
  std::optional<uint64_t> limit;
  BlockId fails_at = UINT32_MAX;

 private:
  void add(const std::string& name, uint64_t bytes) {
    program_.visits.push_back({.block = static_cast<BlockId>(program_.blocks.size()), .cost = {}});
    program_.blocks.push_back({.name = name, .pieces = {}, .storage_bytes = bytes, .memory_bytes = bytes});
  }

  Program program_;
  std::vector<bool> prepared_;
  std::vector<Lifecycle> costs_;
  uint64_t held_ = 0;
};

LadderOptions options_for(Board& board) {
  LadderOptions o;
  o.measure = [&board] { return board.measure(); };
  o.wait = [](std::chrono::nanoseconds) {};
  return o;
}

TEST(Ladder, LoadsAllAndGivesAllBack) {
  Board board(4);
  Ladder l = climb(board, options_for(board)).value();
  EXPECT_EQ(l.end, LadderEnd::all_loaded);
  ASSERT_EQ(l.rows.size(), 8u);
  EXPECT_EQ(growth(l.baseline.pss, l.rows.back().state.pss), 320 * static_cast<int64_t>(kMiB));
  EXPECT_EQ(l.rows.back().weight_bytes, 160 * kMiB);
  EXPECT_EQ(board.held(), 0u);
  EXPECT_EQ(l.released.pss, l.baseline.pss);
  EXPECT_EQ(l.kinds, (std::vector<std::string>{"attn", "ffn"}));
  EXPECT_EQ(l.weights_of_kind, (std::vector<uint64_t>{40 * kMiB, 120 * kMiB}));
  EXPECT_FALSE(l.hold.has_value());
}

TEST(Ladder, StepsAndALimitOfContexts) {
  Board board(6);
  LadderOptions o = options_for(board);
  o.step = 3;
  o.most = 8;
  Ladder l = climb(board, o).value();
  EXPECT_EQ(l.end, LadderEnd::enough);
  ASSERT_EQ(l.rows.size(), 3u);
  EXPECT_EQ(l.rows[0].contexts, 3u);
  EXPECT_EQ(l.rows[2].contexts, 8u) << "the last is measured whatever the step";
}

TEST(Ladder, StopsBeforeTheGateOfAvailableMemory) {
  Board board(50);
  board.available = 2 * kGiB;
  Ladder l = climb(board, options_for(board)).value();
  EXPECT_EQ(l.end, LadderEnd::gate);
  EXPECT_NE(l.why.find("--stop-available"), std::string::npos);
  // 512 MiB between what there is and the gate; 20 and 60 MiB in turn.
  EXPECT_EQ(l.contexts.size(), 13u);
  EXPECT_GE(*l.rows.back().state.available, 1536 * kMiB);
  EXPECT_EQ(board.held(), 0u);
}

TEST(Ladder, StopsWhenTheSystemSwaps) {
  Board board(50);
  board.available = 300 * kMiB;
  LadderOptions o = options_for(board);
  o.gates.available = 0;
  o.hold = std::chrono::seconds(5);
  Ladder l = climb(board, o).value();
  EXPECT_EQ(l.end, LadderEnd::gate);
  EXPECT_NE(l.why.find("--stop-swap"), std::string::npos);
  EXPECT_EQ(l.rows.back().contexts, 8u);
  EXPECT_FALSE(l.hold.has_value()) << "past a gate nothing is held";
  EXPECT_EQ(board.held(), 0u);
}

TEST(Ladder, StopsBeforeTheCgroupsLimit) {
  Board board(50);
  board.limit = 200 * kMiB;
  Ladder l = climb(board, options_for(board)).value();
  EXPECT_EQ(l.end, LadderEnd::gate);
  EXPECT_NE(l.why.find("/box"), std::string::npos);
  EXPECT_EQ(l.contexts.size(), 4u);
  EXPECT_EQ(l.room.bytes, 168 * kMiB);
  EXPECT_EQ(trend_of(l).ends_at, 4u);
}

TEST(Ladder, AGateThatForbidsTheFirstContextDoesNotFit) {
  Board board(2);
  LadderOptions o = options_for(board);
  o.gates.available = 8 * kGiB - 10 * kMiB;  // room for half of the first
  auto l = climb(board, o);
  ASSERT_FALSE(l.ok());
  EXPECT_EQ(l.error().code, ErrorCode::does_not_fit);
  o.gates.available = 9 * kGiB;  // passed before anything
  auto m = climb(board, o);
  ASSERT_FALSE(m.ok());
  EXPECT_EQ(m.error().code, ErrorCode::does_not_fit);
}

TEST(Ladder, AnErrorReleasesEverything) {
  for (BlockId at : {0u, 3u, 7u}) {
    Board board(4);
    board.fails_at = at;
    auto l = climb(board, options_for(board));
    ASSERT_FALSE(l.ok());
    EXPECT_EQ(l.error().code, ErrorCode::io);
    EXPECT_EQ(board.held(), 0u);
  }
}

TEST(Ladder, HoldingWatchesGrowth) {
  Board board(2);
  LadderOptions o = options_for(board);
  o.hold = std::chrono::seconds(2);
  int ticks = 0;
  o.wait = [&](std::chrono::nanoseconds) {
    ++ticks;
    board.leaked = ticks == 2 ? 9 * kMiB : static_cast<uint64_t>(ticks) * kMiB;
  };
  Ladder l = climb(board, o).value();
  ASSERT_TRUE(l.hold.has_value());
  EXPECT_EQ(ticks, 4);
  EXPECT_EQ(growth(l.hold->before.pss, l.hold->after.pss), static_cast<int64_t>(4 * kMiB));
  EXPECT_EQ(l.hold->most_pss, static_cast<int64_t>(9 * kMiB));
  EXPECT_EQ(growth(l.baseline.pss, l.released.pss), static_cast<int64_t>(4 * kMiB)) << "a leak is seen";
}

TEST(Ladder, HoldingStopsAtAGate) {
  Board board(2);
  LadderOptions o = options_for(board);
  o.hold = std::chrono::hours(1);
  int ticks = 0;
  o.wait = [&](std::chrono::nanoseconds) { board.held_swap = static_cast<uint64_t>(++ticks) * 10 * kMiB; };
  Ladder l = climb(board, o).value();
  EXPECT_EQ(ticks, 2);
  EXPECT_EQ(l.end, LadderEnd::gate);
  EXPECT_EQ(l.why.find("while held"), 0u) << l.why;
}

TEST(Ladder, AnInterruptEndsLoadingAndHolding) {
  Board board(10);
  LadderOptions o = options_for(board);
  std::atomic<bool> stop{false};
  o.interrupted = &stop;
  o.measure = [&] {
    if (board.held() >= 100 * kMiB) stop = true;
    return board.measure();
  };
  Ladder l = climb(board, o).value();
  EXPECT_EQ(l.end, LadderEnd::interrupted);
  EXPECT_EQ(l.contexts.size(), 3u);
  EXPECT_EQ(board.held(), 0u);

  stop = false;
  o.measure = [&] { return board.measure(); };
  o.hold = std::chrono::hours(1);
  o.wait = [&](std::chrono::nanoseconds) { stop = true; };
  Ladder held = climb(board, o).value();
  EXPECT_EQ(held.end, LadderEnd::interrupted);
  EXPECT_EQ(held.contexts.size(), 20u);
  EXPECT_EQ(board.held(), 0u);
}

TEST(Ladder, TheTrendForeseesAllBlocks) {
  Board board(42);
  LadderOptions o = options_for(board);
  o.most = 18;
  Ladder l = climb(board, o).value();
  LadderTrend t = trend_of(l);
  EXPECT_DOUBLE_EQ(t.overhead, 2);
  EXPECT_NEAR(t.by_kind->value, 84.0 * 40 * static_cast<double>(kMiB), 1);
  EXPECT_NEAR(t.by_kind->high - t.by_kind->low, 0, 1) << "nothing is left to chance here";
  EXPECT_NEAR(t.by_line->value, t.by_kind->value, 0.05 * t.by_kind->value);
  EXPECT_DOUBLE_EQ(*t.mapped, 84.0 * 40 * static_cast<double>(kMiB));
  EXPECT_DOUBLE_EQ(t.walk.load_s, 42);
  EXPECT_DOUBLE_EQ(t.walk.init_s, 21);
  EXPECT_DOUBLE_EQ(t.walk.release_s, 10.5);
  EXPECT_FALSE(t.ends_at.has_value()) << "3.3 GiB fit below the gate of 8 GiB − 1.5 GiB";
}

TEST(Ladder, TheTrendSaysWhereTheRoomEnds) {
  Board board(42);
  board.available = 3 * kGiB;  // 1.5 GiB above the gate: 38 contexts of 40 MiB each
  LadderOptions o = options_for(board);
  o.most = 18;
  LadderTrend t = trend_of(climb(board, o).value());
  EXPECT_EQ(t.ends_at, 38u);
}

TEST(Ladder, KindsAreNamesWithoutNumbers) {
  auto kind = [](const std::string& name, bool on_demand = false) {
    return kind_of({.name = name, .pieces = {}, .on_demand = on_demand});
  };
  EXPECT_EQ(kind("blk.3.attn/0"), "attn");
  EXPECT_EQ(kind("blk.12.ffn.7/0", true), "ffn expert");
  EXPECT_EQ(kind("blk.12.ffn/0"), "ffn");
  EXPECT_EQ(kind("head/2"), "head");
  EXPECT_EQ(kind("7"), "7");
}

}  // namespace
}  // namespace ridge
