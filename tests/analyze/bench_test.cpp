#include "analyze/bench.h"

#include <gtest/gtest.h>

#include "analyze/bench_cost.h"
#include "analyze/roofs.h"
#include "base/units.h"
#include "tests/golden.h"

namespace ridge {
namespace {

class BenchTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = golden::folder() + "/tiny/llama.gguf";
    if (!golden::exists(path_)) GTEST_SKIP() << "needs ../shared: " << path_;
  }
  std::unique_ptr<Engine> open(const EngineOptions& options) {
    auto engine = Engine::open(options);
    EXPECT_TRUE(engine.ok()) << engine.error().message;
    return std::move(engine).value();
  }
  std::string path_;
};

TEST_F(BenchTest, TokensAreTheSameEveryTime) {
  auto engine = open({.path = path_, .context = 64, .threads = 1, .need_tokenizer = false});
  auto ids = bench_tokens(*engine, 50);
  EXPECT_EQ(ids, bench_tokens(*engine, 50));
  ASSERT_EQ(ids.size(), 50u);
  for (TokenId id : ids) {
    EXPECT_GE(id, 0);
    EXPECT_LT(static_cast<uint32_t>(id), engine->model().config().vocabulary);
  }
}

TEST_F(BenchTest, CostsAreThoseOfThePasses) {
  auto engine = open({.path = path_, .context = 512, .threads = 1, .need_tokenizer = false});
  const Model& model = engine->model();
  auto pass = [&](uint32_t tokens, uint64_t position) {
    // The model's weights are F32, and so is its cache; single tokens are generated ones.
    const TokenRole role = tokens == 1 ? TokenRole::generated : TokenRole::prompt;
    return model.program({.tokens = tokens, .outputs = 1, .position = position, .role = role}, {.kv_type = KvType::f32})
        .cost();
  };
  TestCost one = decode_cost(*engine, {.tokens = 1, .depth = 9});
  EXPECT_EQ(one.cost.memory_bytes, pass(1, 9).memory_bytes);
  EXPECT_EQ(one.cost.kv_bytes, pass(1, 9).kv_bytes);
  EXPECT_EQ(one.passes, 1u);
  // A token later reads one position more: the mean of three is the middle one.
  TestCost three = decode_cost(*engine, {.tokens = 3, .depth = 9});
  EXPECT_EQ(three.cost.kv_bytes, 3 * pass(1, 10).kv_bytes);
  uint32_t batch = engine->plan().batch;
  TestCost prompt = prefill_cost(*engine, {.tokens = batch, .depth = 0});
  EXPECT_EQ(prompt.cost.memory_bytes, pass(batch, 0).memory_bytes);
  EXPECT_EQ(prompt.passes, 1u);
  // Two passes: the head is read in the second alone.
  TestCost two = prefill_cost(*engine, {.tokens = uint64_t{batch} + 1, .depth = 0});
  EXPECT_EQ(two.passes, 2u);
  const Weight& head = model.head();
  EXPECT_EQ(two.cost.memory_bytes,
            pass(batch, 0).memory_bytes + pass(1, batch).memory_bytes - panels_bytes(head.type, head.rows, head.cols));
}

TEST_F(BenchTest, ReadsTheWeightsOfAResidentModelAlone) {
  auto engine = open({.path = path_, .context = 64, .threads = 2, .need_tokenizer = false});
  WeightReads reads(*engine);
  ASSERT_TRUE(reads.possible());
  // All but the rounding of pieces to the loop's kilobyte.
  uint64_t whole = engine->plan().program.memory_bytes();
  EXPECT_LE(reads.bytes(), whole);
  EXPECT_GT(reads.bytes(), whole / 2);
  EXPECT_GT(reads.measure(), 0);
  auto streaming = open({.path = path_, .context = 64, .threads = 2, .most_pinned = 0, .need_tokenizer = false});
  EXPECT_FALSE(WeightReads(*streaming).possible());
}

TEST_F(BenchTest, MeasuresEveryTestAndCountsItsTokens) {
  uint64_t done = 0;
  BenchOptions options{.engine = {.path = path_}, .prompts = {4, 200}, .generated = {3, 0}, .depths = {0, 5}};
  options.threads = {1, 2};
  options.repetitions = 2;
  options.progress = [&](uint64_t tokens) { done += tokens; };
  auto report = run_bench(options);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report.value().results.size(), 12u);
  EXPECT_EQ(done, bench_work(options));
  for (const BenchResult& r : report.value().results) {
    EXPECT_EQ(r.samples.size(), 2u);
    EXPECT_GT(r.tokens_per_s, 0);
    EXPECT_GT(r.gb_per_s, 0);
    EXPECT_TRUE(r.roof_share.has_value());
    EXPECT_FALSE(r.storage_share.has_value());
    EXPECT_TRUE(r.stages.empty());
  }
}

TEST_F(BenchTest, StreamingModelsHaveStorageFigures) {
  BenchOptions options{.engine = {.path = path_, .most_pinned = 0}, .prompts = {4}, .generated = {2}};
  options.threads = {1};
  options.repetitions = 1;
  options.profile = true;
  auto report = run_bench(options);
  ASSERT_TRUE(report.ok()) << report.error().message;
  for (const BenchResult& r : report.value().results) {
    EXPECT_GT(r.storage_gb_per_s, 0);
    EXPECT_FALSE(r.stages.empty());
  }
}

TEST_F(BenchTest, AnInterruptedRunKeepsWhatItHas) {
  std::atomic<bool> interrupted{false};
  uint64_t done = 0;
  BenchOptions options{.engine = {.path = path_}, .prompts = {4}, .generated = {}, .depths = {0, 1, 2}};
  options.threads = {1};
  options.repetitions = 3;
  options.interrupted = &interrupted;
  // The warm-up, two repetitions, and then somebody presses Ctrl-C in the middle of the third.
  options.progress = [&](uint64_t tokens) {
    done += tokens;
    if (done >= 16) interrupted = true;
  };
  auto report = run_bench(options);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_TRUE(report.value().interrupted);
  ASSERT_EQ(report.value().results.size(), 1u);
  EXPECT_EQ(report.value().results[0].samples.size(), 2u);
}

TEST_F(BenchTest, RefusesWhatMeasuresNothing) {
  EXPECT_EQ(run_bench({.engine = {.path = path_}, .prompts = {0}, .generated = {}}).error().code, ErrorCode::usage);
  EXPECT_EQ(run_bench({.engine = {.path = path_}, .repetitions = 0}).error().code, ErrorCode::usage);
  EXPECT_EQ(run_bench({.engine = {.path = path_, .context = 8}, .prompts = {9}}).error().code, ErrorCode::usage);
}

}  // namespace
}  // namespace ridge
