// The cache of experts: a share for each layer, what is dropped, and the guard against a cache smaller than the demand.
#include "memory/expert_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "tests/memory/fixture.h"

namespace ridge {
namespace {

// Two layers of six experts each, one block per expert: the feed-forward blocks 1, 3, … 23 of the test model.
class ExpertCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    model_ = test::ModelBuilder(Layout::rows).build(folder_ / "model", 12);
    Program& p = model_.program;
    for (uint32_t group = 0; group < 2; ++group) {
      p.expert_groups.push_back({.first_step = static_cast<uint32_t>(p.steps.size()), .experts = 6, .used = 2});
      for (uint32_t e = 0; e < 6; ++e) {
        p.blocks[expert(group, e)].on_demand = true;
        p.steps.push_back({{.block = expert(group, e), .first_piece = 0, .piece_count = 1}});
        p.steps.emplace_back();
      }
    }
  }

  static BlockId expert(uint32_t layer, uint32_t e) { return 2 * (6 * layer + e) + 1; }

  std::unique_ptr<StreamingSource> make(uint32_t cache, uint32_t passing, ExpertPolicy policy = ExpertPolicy::lru,
                                        TaskMode mode = TaskMode::mean, const TaskTable* table = nullptr) {
    StreamingSourceOptions o;
    o.program = &model_.program;
    o.placement = test::placement_of(model_.program, [&](BlockId b) { return !model_.program.blocks[b].on_demand; });
    o.placement.expert_cache = cache;
    o.placement.expert_slots = 2 * cache + passing;
    o.placement.expert_policy = policy;
    o.pool = &pool_;
    o.huge_pages = false;
    o.tasks = table;
    o.task_mode = mode;
    if (mode == TaskMode::named) o.task = 0;
    auto source = StreamingSource::create(o);
    EXPECT_TRUE(source.ok()) << source.error().message;
    return std::move(source).value();
  }

  // A layer of a pass: its router chose these.
  void use(WeightSource& source, uint32_t layer, const std::vector<uint32_t>& chosen) {
    std::vector<BlockId> left;
    for (uint32_t e : chosen) left.push_back(expert(layer, e));
    source.want(left);
    while (!left.empty()) {
      const size_t next = source.next_ready(left);
      ASSERT_LT(next, left.size());
      const BlockId b = left[next];
      auto lease = source.acquire(b);
      ASSERT_TRUE(lease.ok()) << lease.error().message;
      const Piece& piece = model_.program.blocks[b].pieces[0];
      const StoredTensor& t = model_.program.tensors[piece.tensor];
      EXPECT_TRUE(test::block_bytes(model_.program, b, lease.value()) ==
                  test::panels_of(model_.program, piece,
                                  {Layout::rows, model_.bytes.data() + t.stored_offset(piece.row_begin)}))
          << "block " << b;
      left.erase(left.begin() + static_cast<ptrdiff_t>(next));
    }
  }

  test::TempFolder folder_;
  test::Model model_;
  ThreadPool pool_{{.threads = 2, .cpus = {}}};
};

TEST_F(ExpertCacheTest, ALayerDoesNotPushOutAnother) {
  auto source = make(2, 2);
  for (int token = 0; token < 10; ++token) {
    ASSERT_TRUE(source->begin_pass({}).ok());
    use(*source, 0, {1, 4});
    use(*source, 1, {0, 5});
  }
  EXPECT_EQ(source->stats().experts_asked, 40u);
  EXPECT_EQ(source->stats().expert_hits, 36u);
  EXPECT_EQ(source->stats().experts_passed, 0u);
}

// With replacement alone a cache of two that is asked for four in turn would never hit.
TEST_F(ExpertCacheTest, WhatATokenUsesIsNotEvictedByTheSameToken) {
  for (ExpertPolicy policy : {ExpertPolicy::lru, ExpertPolicy::decayed_lfu}) {
    auto source = make(2, 2, policy);
    for (int token = 0; token < 10; ++token) {
      ASSERT_TRUE(source->begin_pass({}).ok());
      use(*source, 0, {0, 1, 2, 3});
      use(*source, 1, {2, 3, 4, 5});
    }
    EXPECT_EQ(source->stats().experts_asked, 80u);
    EXPECT_EQ(source->stats().expert_hits, 36u);
    EXPECT_EQ(source->stats().experts_passed, 40u);
  }
}

TEST_F(ExpertCacheTest, WhatIsUsedOftenStaysUnderDecayedLfuOnly) {
  uint64_t hits[2];
  for (ExpertPolicy policy : {ExpertPolicy::lru, ExpertPolicy::decayed_lfu}) {
    auto source = make(2, 1, policy);
    for (int token = 0; token < 3; ++token) use(*source, 0, {0});
    const uint64_t before = source->stats().expert_hits;
    for (uint32_t round = 0; round < 5; ++round) {
      use(*source, 0, {1 + round % 2});
      use(*source, 0, {3 + round % 3});
      use(*source, 0, {0});
    }
    hits[policy == ExpertPolicy::lru ? 0 : 1] = source->stats().expert_hits - before;
  }
  EXPECT_EQ(hits[0], 0u);
  EXPECT_EQ(hits[1], 5u);
}

TEST_F(ExpertCacheTest, WhatWasUsedOftenLongAgoMakesRoom) {
  auto source = make(2, 1, ExpertPolicy::decayed_lfu);
  for (int token = 0; token < 8; ++token) use(*source, 0, {0});
  // Some hundreds of tokens later it counts less than one use.
  for (int token = 0; token < 300; ++token) use(*source, 0, {1u + static_cast<uint32_t>(token) % 2});
  const uint64_t before = source->stats().expert_hits;
  use(*source, 0, {1});
  use(*source, 0, {2});
  EXPECT_EQ(source->stats().expert_hits - before, 2u);
}

TEST_F(ExpertCacheTest, SameBytesWhateverIsChosen) {
  for (uint32_t cache : {0u, 1u, 3u, 6u}) {
    for (uint32_t passing : {1u, 2u, 4u}) {
      auto source = make(cache, passing, cache == 3 ? ExpertPolicy::decayed_lfu : ExpertPolicy::lru);
      std::mt19937 random(cache + passing);
      for (int token = 0; token < 30; ++token) {
        ASSERT_TRUE(source->begin_pass({}).ok());
        for (uint32_t layer : {0u, 1u}) {
          std::vector<uint32_t> all = {0, 1, 2, 3, 4, 5};
          std::shuffle(all.begin(), all.end(), random);
          all.resize(1 + random() % 6);
          use(*source, layer, all);
          if (HasFatalFailure()) return;
        }
        // A pass that ends before what it wanted was used.
        if (token % 7 == 0) {
          const BlockId wanted[] = {expert(0, 5), expert(0, 1), expert(0, 2)};
          source->want(wanted);
        }
      }
      // A cache of all is asked twice at most for each.
      if (cache != 6) continue;
      EXPECT_LE(source->stats().experts_asked - source->stats().expert_hits, 12u);
    }
  }
}

TEST_F(ExpertCacheTest, AReadErrorIsToldOnceAndThenReadAnew) {
  test::FaultySyscalls faulty;
  faulty.armed = false;
  StreamingSourceOptions o;
  o.program = &model_.program;
  o.placement = test::placement_of(model_.program, [&](BlockId b) { return !model_.program.blocks[b].on_demand; });
  o.placement.expert_cache = 2;
  o.placement.expert_slots = 6;
  o.pool = &pool_;
  o.huge_pages = false;
  o.syscalls = &faulty;
  auto source = StreamingSource::create(o);
  ASSERT_TRUE(source.ok()) << source.error().message;
  faulty.fault = [](int64_t, int) { return int64_t{-ENXIO}; };
  faulty.armed = true;
  const BlockId wanted[] = {expert(0, 0), expert(0, 3)};
  source.value()->want(wanted);
  EXPECT_FALSE(source.value()->acquire(wanted[0]).ok());
  EXPECT_FALSE(source.value()->acquire(wanted[1]).ok());
  faulty.armed = false;
  use(*source.value(), 0, {0, 3});
}

// Task 0 uses experts 0 and 1 of both layers, task 1 experts 4 and 5.
TaskTable two_tasks(const Program& program, const std::function<BlockId(uint32_t, uint32_t)>& expert) {
  TaskTable t{.names = {"a", "b"}, .tokens = {100, 100}, .touch = {}, .mean = {}};
  t.touch.assign(2, std::vector<float>(program.blocks.size(), 0));
  for (uint32_t task = 0; task < 2; ++task) {
    for (uint32_t layer = 0; layer < 2; ++layer) {
      for (uint32_t e = 0; e < 6; ++e) t.touch[task][expert(layer, e)] = e / 4 == task && e % 4 < 2 ? 0.9f : 0.05f;
    }
  }
  t.fill_mean();
  return t;
}

TEST_F(ExpertCacheTest, PinsOfTheNamedTaskAreReadBeforeTheyAreAskedFor) {
  const TaskTable table = two_tasks(model_.program, expert);
  auto source = make(4, 2, ExpertPolicy::importance, TaskMode::named, &table);
  ASSERT_NE(source->task_stats(), nullptr);
  EXPECT_EQ(source->task_stats()->pinned, 4u) << "half of eight slots";
  ASSERT_TRUE(source->begin_pass({}).ok());
  EXPECT_TRUE(source->task_stats()->switches.back().done);
  use(*source, 0, {0, 1});
  use(*source, 1, {0, 1});
  EXPECT_EQ(source->stats().expert_hits, 4u);
  EXPECT_EQ(source->stats().experts_passed, 0u);
}

// What passes by does not push out pins; the other task's come when it is named, and everything is still right.
TEST_F(ExpertCacheTest, PinsChangeByHandWhileAnswersContinue) {
  const TaskTable table = two_tasks(model_.program, expert);
  auto source = make(2, 2, ExpertPolicy::importance, TaskMode::named, &table);
  EXPECT_EQ(source->task_stats()->pinned, 2u);
  for (uint32_t token = 0; token < 12; ++token) {
    ASSERT_TRUE(source->begin_pass({}).ok());
    use(*source, 0, {0, 2 + token % 2});
    use(*source, 1, {2 + token % 4});
  }
  EXPECT_GE(source->stats().expert_hits, 12u);
  source->name_task(1);
  EXPECT_EQ(source->task_stats()->changes, 1u);
  ASSERT_TRUE(source->begin_pass({}).ok());
  const TaskSwitch& now = source->task_stats()->switches.back();
  EXPECT_TRUE(now.done);
  EXPECT_EQ(now.from, std::optional<size_t>(0));
  EXPECT_EQ(now.to, std::optional<size_t>(1));
  EXPECT_GT(now.bytes, 0u);
  // Two of these four are pinned: the larger ones.
  const uint64_t hits = source->stats().expert_hits;
  use(*source, 0, {4, 5});
  use(*source, 1, {4, 5});
  EXPECT_GE(source->stats().expert_hits - hits, 2u);
  source->name_task(1);
  EXPECT_EQ(source->task_stats()->changes, 1u) << "the same task again";
}

TEST_F(ExpertCacheTest, TheTaskIsDetectedFromWhatPassesUse) {
  const TaskTable table = two_tasks(model_.program, expert);
  auto source = make(2, 2, ExpertPolicy::importance, TaskMode::detected, &table);
  EXPECT_FALSE(source->task_stats()->switches.back().to);
  for (uint32_t token = 0; token < 60; ++token) {
    ASSERT_TRUE(source->begin_pass({.tokens = 1}).ok());
    const uint32_t first = token < 30 ? 0 : 4;
    use(*source, 0, {first, first + 1});
    use(*source, 1, {first, first + 1});
  }
  const TaskStats& stats = *source->task_stats();
  EXPECT_EQ(stats.changes, 2u);
  EXPECT_EQ(stats.switches[1].to, std::optional<size_t>(0));
  EXPECT_EQ(stats.switches[2].to, std::optional<size_t>(1));
  EXPECT_GT(stats.switches[2].pass, 30u);
  EXPECT_LT(stats.switches[2].pass, 50u);
}

TEST_F(ExpertCacheTest, WhatIsThereCountsWhatIsOnItsWay) {
  auto source = make(2, 2);
  EXPECT_FALSE(source->there(expert(0, 3)));
  const BlockId wanted[] = {expert(0, 3)};
  source->want(wanted);
  EXPECT_TRUE(source->there(expert(0, 3)));
  EXPECT_TRUE(source->there(0)) << "pinned";
}

}  // namespace
}  // namespace ridge
