// Pinned blocks that are given back and read again while a model runs.
#include "memory/elastic_pins.h"

#include "machine/memory_limits.h"
#include "tests/memory/source_fixture.h"

namespace ridge {
namespace {

using test::FaultySyscalls;
using test::kPins;
using test::Model;
using test::ModelBuilder;
using test::StreamingSourceTest;

class ElasticPinsTest : public StreamingSourceTest {
 protected:
  // Everything is pinned, and all but the tied head may go.
  StreamingSourceOptions elastic(const Model& model, std::string_view pins = "all") {
    StreamingSourceOptions o = options(model, kPins.at(std::string(pins)));
    o.placement.elastic.assign(model.program.blocks.size(), 1);
    for (BlockId b = 0; b < blocks(); ++b) {
      if (model.program.blocks[b].name.starts_with("head")) o.placement.elastic[b] = 0;
    }
    return o;
  }
  // Bytes that a pass reads from storage, once the slots hold what they hold.
  uint64_t reads_of_a_pass(StreamingSource& source) {
    pass(source);
    const uint64_t before = source.stats().bytes_read;
    pass(source);
    return source.stats().bytes_read - before;
  }
};

TEST_F(ElasticPinsTest, BytesStayWhileBlocksGoAndComeBack) {
  for (const Model* model : {&rows_, &panels_}) {
    for (const char* pins : {"all", "every second"}) {
      auto source = make(elastic(*model, pins));
      const uint64_t first = reads_of_a_pass(*source);
      std::vector<uint64_t> reads;
      while (source->give_back(1) > 0) {
        reads.push_back(reads_of_a_pass(*source));
        check_gather(*source);
      }
      ASSERT_GE(reads.size(), 2u) << "several steps";
      EXPECT_GE(reads.front(), first);  // what two slots hold is read once
      EXPECT_GT(reads.back(), reads.front());
      const uint64_t given = source->given_back();
      EXPECT_GT(given, 0u);
      EXPECT_EQ(source->take_back(0).value(), 0u);
      const ElasticState state = source->elastic_state();
      EXPECT_EQ(state.gone, state.blocks);
      EXPECT_GE(given, state.largest_step);
      auto some = source->take_back(std::max(given / 2, state.largest_step));
      ASSERT_TRUE(some.ok()) << some.error().message;
      EXPECT_GT(some.value(), 0u);
      EXPECT_LE(some.value(), std::max(given / 2, state.largest_step));
      EXPECT_LT(reads_of_a_pass(*source), reads.back());
      auto rest = source->take_back(source->given_back());
      ASSERT_TRUE(rest.ok()) << rest.error().message;
      EXPECT_EQ(some.value() + rest.value(), given);
      EXPECT_EQ(source->given_back(), 0u);
      EXPECT_EQ(reads_of_a_pass(*source), first);
      check_gather(*source);
    }
  }
}

TEST_F(ElasticPinsTest, WhatMayNotGoStays) {
  StreamingSourceOptions o = options(rows_, kPins.at("all"));
  auto fixed = make(o);
  EXPECT_EQ(fixed->give_back(UINT64_MAX), 0u);
  EXPECT_EQ(fixed->take_back(UINT64_MAX).value(), 0u);
  auto source = make(elastic(rows_));
  (void)source->give_back(UINT64_MAX);
  pass(*source);
  EXPECT_EQ(source->stats().visits - source->stats().pinned_visits, blocks() - 3)
      << "the head's three blocks are pinned";
}

TEST_F(ElasticPinsTest, TheKernelGetsTheMemory) {
  if (test::kSanitized) GTEST_SKIP() << "a sanitizer's own memory drowns the figure";
  Model large = ModelBuilder(Layout::rows).build(folder_ / "large", 5, 200);
  auto source = make(elastic(large));
  const uint64_t before = process_memory().anonymous;
  const uint64_t freed = source->give_back(UINT64_MAX);
  EXPECT_GT(freed, large.program.memory_bytes() / 2);
  const uint64_t after = process_memory().anonymous;
  EXPECT_LT(after, before - freed + freed / 8);
  ASSERT_TRUE(source->take_back(UINT64_MAX).ok());
  EXPECT_GT(process_memory().anonymous, before - freed / 8);
}

TEST_F(ElasticPinsTest, AReadErrorLeavesBlocksGivenBack) {
  FaultySyscalls calls;
  calls.armed = false;
  StreamingSourceOptions o = elastic(rows_);
  o.syscalls = &calls;
  auto source = make(o);
  const uint64_t freed = source->give_back(UINT64_MAX);
  calls.fault = [](int64_t, int) -> int64_t { return -EIO; };
  calls.armed = true;
  auto failed = source->take_back(UINT64_MAX);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, ErrorCode::io);
  EXPECT_EQ(source->given_back(), freed);
  calls.armed = false;
  pass(*source);
  EXPECT_EQ(source->take_back(UINT64_MAX).value(), freed);
  pass(*source);
}

TEST_F(ElasticPinsTest, TheAccountCountsTheSlots) {
  const StreamingSourceOptions o = elastic(rows_), fixed = options(rows_, kPins.at("all"));
  const SourceMemory with = StreamingSource::memory(rows_.program, o.placement, o.gathered, false);
  const SourceMemory without = StreamingSource::memory(rows_.program, fixed.placement, o.gathered, false);
  EXPECT_EQ(without.slots, 0u);
  EXPECT_GE(with.slots, 2 * rows_.program.blocks[1].storage_bytes);
  EXPECT_EQ(with.pins, without.pins);
}

}  // namespace
}  // namespace ridge
