// Blocks on demand: slots of their own, reads that begin when a router has chosen, and the same bytes whatever the
// number of slots.
#include <gtest/gtest.h>

#include <algorithm>

#include "memory/source_layout.h"
#include "memory/streaming_source.h"
#include "tests/memory/fixture.h"

namespace ridge {
namespace {

// Blocks 1, 3, 5, 7, 9 (the feed-forward parts) become experts.
class ExpertSlots : public ::testing::Test {
 protected:
  void SetUp() override {
    model_ = test::ModelBuilder(Layout::rows).build(folder_ / "model", 5);
    for (BlockId b = 1; b < 10; b += 2) model_.program.blocks[b].on_demand = true;
  }

  std::unique_ptr<StreamingSource> make(uint32_t slots, const std::function<bool(BlockId)>& pinned,
                                        Syscalls* syscalls = nullptr) {
    StreamingSourceOptions o;
    o.program = &model_.program;
    o.placement = test::placement_of(model_.program, pinned);
    o.placement.expert_slots = slots;
    o.pool = &pool_;
    o.huge_pages = false;
    o.syscalls = syscalls;
    auto source = StreamingSource::create(o);
    EXPECT_TRUE(source.ok()) << source.error().message;
    return std::move(source).value();
  }

  void check(WeightSource& source, BlockId b) {
    auto lease = source.acquire(b);
    ASSERT_TRUE(lease.ok()) << lease.error().message;
    std::vector<uint8_t> want;
    for (const Piece& piece : model_.program.blocks[b].pieces) {
      const StoredTensor& t = model_.program.tensors[piece.tensor];
      auto panels = test::panels_of(model_.program, piece,
                                    {Layout::rows, model_.bytes.data() + t.stored_offset(piece.row_begin)});
      want.insert(want.end(), panels.begin(), panels.end());
    }
    EXPECT_TRUE(test::block_bytes(model_.program, b, lease.value()) == want) << "block " << b;
  }

  void use(WeightSource& source, std::vector<BlockId> chosen) {
    source.want(chosen);
    while (!chosen.empty()) {
      size_t next = source.next_ready(chosen);
      ASSERT_LT(next, chosen.size());
      check(source, chosen[next]);
      chosen.erase(chosen.begin() + static_cast<ptrdiff_t>(next));
    }
  }

  uint64_t bytes_of(BlockId b) const {
    uint64_t sum = 0;
    for (const Piece& p : model_.program.blocks[b].pieces) {
      const StoredTensor& t = model_.program.tensors[p.tensor];
      sum += read_span(t.stored_offset(p.row_begin), t.stored_bytes(p.row_begin, p.row_end));
    }
    return sum;
  }

  test::TempFolder folder_;
  test::Model model_;
  ThreadPool pool_{{.threads = 2, .cpus = {}}};
};

bool nothing(BlockId) { return false; }
bool all_but_experts(BlockId b) { return b % 2 == 0 || b >= 10; }

TEST_F(ExpertSlots, SameBytesWhateverTheSlots) {
  for (uint32_t slots : {1u, 2u, 5u}) {
    auto source = make(slots, nothing);
    for (int pass = 0; pass < 3; ++pass) {
      ASSERT_TRUE(source->begin_pass({}).ok());
      check(*source, 0);
      use(*source, {1, 5, 9});
      check(*source, 2);
      use(*source, {3, 5, 7, 9, 1});
      for (BlockId b = 10; b < model_.program.blocks.size(); ++b) check(*source, b);
    }
  }
}

TEST_F(ExpertSlots, NothingIsReadThatNobodyChose) {
  auto source = make(2, all_but_experts);
  ASSERT_TRUE(source->begin_pass({}).ok());
  use(*source, {3, 7, 9});
  EXPECT_EQ(source->stats().bytes_read, bytes_of(3) + bytes_of(7) + bytes_of(9));
}

TEST_F(ExpertSlots, WhatIsInASlotIsNotReadAgain) {
  auto source = make(3, all_but_experts);
  use(*source, {1, 5, 9});
  const uint64_t before = source->stats().bytes_read;
  ASSERT_TRUE(source->begin_pass({}).ok());
  use(*source, {9, 1, 5});
  EXPECT_EQ(source->stats().bytes_read, before);
  // The one used longest ago makes room: that was 9.
  use(*source, {3});
  use(*source, {1, 5});
  EXPECT_EQ(source->stats().bytes_read, before + bytes_of(3));
}

TEST_F(ExpertSlots, APassThatEndsEarlyLeavesNothingBehind) {
  auto source = make(2, nothing);
  ASSERT_TRUE(source->begin_pass({}).ok());
  const BlockId wanted[] = {1, 3, 5, 7};
  source->want(wanted);
  ASSERT_TRUE(source->begin_pass({}).ok());
  use(*source, {9, 7});
}

TEST_F(ExpertSlots, AReadErrorIsToldByTheExpertThatNeedsIt) {
  test::FaultySyscalls faulty;
  faulty.armed = false;
  auto source = make(2, all_but_experts, &faulty);
  faulty.fault = [](int64_t, int) { return int64_t{-ENXIO}; };
  faulty.armed = true;
  const BlockId wanted[] = {3};
  source->want(wanted);
  EXPECT_FALSE(source->acquire(3).ok());
  faulty.armed = false;
  check(*source, 3);
}

TEST_F(ExpertSlots, TheLayoutCountsThemApart) {
  Placement placement = test::placement_of(model_.program, nothing);
  placement.expert_slots = 4;
  const SourceLayout layout = SourceLayout::of(model_.program, placement, {}, false);
  uint64_t largest_expert = 0;
  for (BlockId b = 1; b < 10; b += 2) largest_expert = std::max(largest_expert, bytes_of(b));
  EXPECT_EQ(layout.expert_slots, 4u);
  EXPECT_GE(layout.expert_slot_bytes, largest_expert);
  const SourceMemory with = layout.memory(model_.program);
  EXPECT_GE(with.experts, 4 * largest_expert);
  const Placement resident = test::placement_of(model_.program, [](BlockId b) { return b % 2 == 1; });
  EXPECT_EQ(SourceLayout::of(model_.program, resident, {}, false).memory(model_.program).experts, 0u);
}

}  // namespace
}  // namespace ridge
