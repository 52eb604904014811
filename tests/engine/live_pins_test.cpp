// Memory pressure while a model runs: pins go and come back between passes, and no byte of the logits changes.
#include "engine/live_pins.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "tests/golden.h"
#include "tests/memory/source_fixture.h"

namespace ridge {
namespace {

using Logits = std::vector<std::vector<float>>;

// Signs of pressure by pass.
using Script = std::function<MemoryPressure(size_t pass)>;

constexpr uint64_t kFloor = kGiB;
const MemoryPressure kPlenty{.available = 16 * kGiB};
const MemoryPressure kTight{.available = kFloor - 1};  // a step goes
const MemoryPressure kNothing{.available = 0};         // all goes

const std::pair<const char*, Script> kScripts[] = {
    {"a step at every pass", [](size_t) { return kTight; }},
    {"down and up", [](size_t pass) { return pass % 4 < 2 ? kTight : kPlenty; }},
    {"all, then back in steps", [](size_t pass) { return pass % 5 == 0 ? kNothing : kPlenty; }},
    {"the cgroup's limit", [](size_t pass) { return MemoryPressure{.cgroup_left = kGiB / 2, .limit_hits = pass / 2}; }},
    {"stalls", [](size_t pass) { return MemoryPressure{.stalled = pass % 2 == 0 ? 0.5 : 0.0}; }},
};

EngineOptions under_pressure(EngineOptions options, const Script& script) {
  options.floor = kFloor;
  options.live = {.step = 16 * kKiB, .rest = std::chrono::milliseconds(0), .calm = std::chrono::milliseconds(0)};
  options.pressure = [script, pass = size_t{0}]() mutable { return script(pass++); };
  return options;
}

class LivePinsOf : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { RIDGE_SKIP_WITHOUT(path(), "needs ../shared"); }
  std::string path() const { return golden::folder() + "/tiny/" + GetParam() + ".gguf"; }

  std::unique_ptr<Engine> open(EngineOptions options, uint32_t rows) {
    options.path = path();
    options.default_context = ids_.size() + 32;
    options.threads = 2;
    options.logits_rows = rows;
    options.need_tokenizer = false;
    auto engine = Engine::open(options);
    EXPECT_TRUE(engine.ok()) << engine.error().message;
    return engine.ok() ? std::move(engine).value() : nullptr;
  }
  Logits run(const EngineOptions& options, uint32_t rows) {
    engine_ = open(options, rows);
    return engine_ ? golden::all_logits(*engine_, ids_) : Logits{};
  }

  std::vector<TokenId> ids_ = {1, 17, 300, 5, 9, 250, 33, 2, 2, 111, 87, 319, 0, 45, 46, 47, 200, 12, 90, 77, 3};
  std::unique_ptr<Engine> engine_;
};

TEST_P(LivePinsOf, NoByteOfTheLogitsChanges) {
  const Logits plain = run({}, 8);
  ASSERT_EQ(engine_->live(), nullptr) << "nothing is reserved where nobody asks for it";
  for (const auto& [name, script] : kScripts) {
    for (std::optional<uint64_t> pinned : {std::optional<uint64_t>(), std::optional<uint64_t>(200 * kKiB)}) {
      for (IoKind io : {IoKind::uring, IoKind::threads, IoKind::buffered}) {
        for (uint32_t rows : {1u, 8u}) {
          const std::string what =
              fmt::format("{}, {}, {} tokens per pass{}", name, name_of(io), rows, pinned ? ", some pinned" : "");
          EXPECT_TRUE(plain == run(under_pressure({.io = io, .most_pinned = pinned}, script), rows)) << what;
          ASSERT_NE(engine_, nullptr);
          if (engine_->live() == nullptr) {
            EXPECT_TRUE(pinned) << what << ": a resident plan with a floor reserves slots";
            continue;
          }
          const LiveStats& live = *engine_->live();
          EXPECT_GT(live.releases, 0u) << what;
          EXPECT_GT(live.most_away, 0u) << what;
          EXPECT_EQ(live.failed_returns, 0u) << what;
          EXPECT_EQ(live.released_bytes - live.returned_bytes, engine_->source().given_back()) << what;
        }
      }
    }
  }
}

TEST_P(LivePinsOf, WhatWentComesBack) {
  auto script = [](size_t pass) { return pass == 1 ? kNothing : kPlenty; };
  (void)run(under_pressure({}, script), 1);
  ASSERT_NE(engine_->live(), nullptr);
  const LiveStats& live = *engine_->live();
  EXPECT_EQ(live.releases, 1u);
  EXPECT_GE(live.returns, 1u);
  const ElasticState state = engine_->source().elastic_state();
  EXPECT_GT(state.blocks, 0u);
  EXPECT_LT(state.gone, state.blocks);
}

// Several generated tokens per pass, of which the last is taken back.
TEST_P(LivePinsOf, DraftsToo) {
  auto decode = [&](EngineOptions options) {
    options.verify_tokens = 4;
    auto engine = open(options, 1);
    Logits out;
    EXPECT_TRUE(engine->evaluate(ids_).ok());
    for (TokenId id = 0; id < 8; ++id) {
      const TokenId ids[] = {id, id + 1, id + 2};
      auto logits = engine->decode(ids);
      EXPECT_TRUE(logits.ok()) << logits.error().message;
      if (!logits.ok()) return out;
      for (size_t r = 0; r < 3; ++r) {
        const std::span<const float> row = logits.value().row_span(r);
        out.emplace_back(row.begin(), row.end());
      }
      engine->take_back(1);
    }
    return out;
  };
  const Logits plain = decode({});
  for (const auto& [name, script] : kScripts) EXPECT_TRUE(plain == decode(under_pressure({}, script))) << name;
}

TEST_P(LivePinsOf, TheAccountHoldsTheSlotsWithinTheBudget) {
  if (test::kSanitized) GTEST_SKIP() << "a sanitizer keeps freed memory, so that accounts grow from one to the next";
  auto preview = [&](std::optional<uint64_t> memory, std::optional<uint64_t> floor) {
    return Engine::preview({.path = path(),
                            .memory = memory,
                            .default_context = 64,
                            .threads = 1,
                            .floor = floor,
                            .need_tokenizer = false});
  };
  const Engine::Preview free = preview(std::nullopt, std::nullopt).value();
  const Engine::Preview live = preview(std::nullopt, kFloor).value();
  EXPECT_FALSE(live.plan.placement.streams());
  EXPECT_GT(live.plan.placement.slot_bytes, 0u);
  EXPECT_GT(live.plan.account.total(), free.plan.account.total());
  // With a budget below that everything together stays within it.
  const uint64_t budget = live.plan.account.total() - 256 * kKiB;
  auto tight = preview(budget, kFloor);
  ASSERT_TRUE(tight.ok()) << tight.error().message;
  EXPECT_LE(tight.value().plan.account.total(), budget);
}

TEST_P(LivePinsOf, AFloorOfNothingKeepsThePins) {
  auto engine = open({.most_pinned = 200 * kKiB, .floor = 0}, 1);
  EXPECT_EQ(engine->live(), nullptr);
}

INSTANTIATE_TEST_SUITE_P(Tiny, LivePinsOf,
                         testing::Values("type-Q4_0", "type-F16", "gemma3", "qwen3moe", "gpt-oss", "deepseek2-joint"),
                         [](const auto& c) {
                           std::string name = c.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Reading again fails: the pins stay away, the run goes on, and later they come.
class LivePinsFaults : public test::StreamingSourceTest {};

TEST_F(LivePinsFaults, WhatCannotBeReadAgainKeepsStreaming) {
  test::FaultySyscalls calls;
  calls.armed = false;
  StreamingSourceOptions o = options(rows_, test::kPins.at("all"));
  o.placement.elastic.assign(blocks(), 1);
  for (BlockId b = 0; b < blocks(); ++b) {
    if (rows_.program.blocks[b].name.starts_with("head")) o.placement.elastic[b] = 0;
  }
  o.syscalls = &calls;
  auto source = make(o);
  MemoryPressure pressure = kNothing;
  LivePins live(
      {.floor = kFloor, .step = kGiB, .rest = std::chrono::milliseconds(0), .calm = std::chrono::milliseconds(0)},
      *source, [&] { return pressure; });
  live.before_pass();
  pass(*source);
  const uint64_t away = source->given_back();
  EXPECT_GT(away, 0u);
  pressure = kPlenty;
  calls.fault = [](int64_t, int) -> int64_t { return -EIO; };
  calls.armed = true;
  live.before_pass();
  calls.armed = false;
  EXPECT_EQ(live.stats().failed_returns, 1u);
  EXPECT_EQ(source->given_back(), away);
  pass(*source);
  live.before_pass();
  EXPECT_EQ(live.stats().returns, 1u);
  EXPECT_EQ(source->given_back(), 0u);
  pass(*source);
  check_gather(*source);
}

}  // namespace
}  // namespace ridge
