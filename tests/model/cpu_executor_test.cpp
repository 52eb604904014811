// The CPU executor on a small file: right products, its account, and nothing left after release or failure.
#include "model/cpu_executor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "kernels/choose.h"
#include "machine/memory_state.h"
#include "tests/memory/fixture.h"

namespace ridge {
namespace {

class CpuExecutorTest : public ::testing::Test {
 protected:
  void SetUp() override { build(Layout::rows); }

  void build(Layout layout) {
    path_ = folder_ / "model";
    model_ = test::ModelBuilder(layout).build(path_, 2, 3);
    Program& p = model_.program;
    for (BlockId b = 0; b < p.blocks.size(); ++b) {
      p.steps.push_back({{b, 0, static_cast<uint32_t>(p.blocks[b].pieces.size())}});
    }
  }
  std::unique_ptr<Executor> make(const Kernels& kernels, uint32_t tokens = 2, bool exact = false,
                                 Syscalls* calls = nullptr) {
    auto executor = CpuExecutor::create({.program = &model_.program,
                                         .pool = &pool_,
                                         .kernels = &kernels,
                                         .tokens = tokens,
                                         .exact = exact,
                                         .syscalls = calls});
    EXPECT_TRUE(executor.ok()) << executor.error().message;
    return std::move(executor).value();
  }
  // The outputs of every step of the block.
  std::vector<float> outputs(Executor& executor, BlockId block, size_t tokens) {
    std::vector<float> all;
    for (const auto& step : model_.program.steps) {
      for (const Slice& slice : step) {
        if (slice.block != block) continue;
        Matrix<float> x = executor.input(slice);
        EXPECT_GE(x.rows, tokens);
        std::mt19937 random(block);
        std::uniform_real_distribution<float> uniform(-1, 1);
        for (size_t t = 0; t < tokens; ++t) {
          for (float& v : x.row_span(t)) v = uniform(random);
        }
        Matrix<const float> y = executor.run(slice, tokens).value();
        for (size_t t = 0; t < tokens; ++t) all.insert(all.end(), y.row(t), y.row(t) + y.cols);
      }
    }
    return all;
  }

  test::TempFolder folder_;
  std::string path_;
  test::Model model_;
  ThreadPool pool_{{.threads = 2, .cpus = {}}};
  Kernels kernels_ = choose_kernels({}).value().kernels;
  Kernels scalar_ = choose_kernels({.isa = Isa::scalar}).value().kernels;
};

TEST_F(CpuExecutorTest, TheSameBytesOnEveryIsaAndLayout) {
  auto best = make(kernels_);
  std::vector<std::vector<float>> first;
  for (BlockId b = 0; b < model_.program.blocks.size(); ++b) {
    ASSERT_TRUE(best->prepare(b).ok());
    first.push_back(outputs(*best, b, 2));
  }
  build(Layout::panels);
  auto other = make(scalar_);
  for (BlockId b = 0; b < model_.program.blocks.size(); ++b) {
    ASSERT_TRUE(other->prepare(b).ok());
    std::vector<float> got = outputs(*other, b, 2);
    ASSERT_EQ(got.size(), first[b].size());
    // Random bytes make NaNs among the weights, and which NaN comes out of them is not part of the contract.
    for (std::vector<float>* all : {&got, &first[b]}) {
      for (float& v : *all) v = std::isnan(v) ? 0.0f : v;
    }
    EXPECT_EQ(std::memcmp(got.data(), first[b].data(), got.size() * sizeof(float)), 0) << model_.program.blocks[b].name;
  }
}

// The weights of a step as floats, each row dotted with x in double.
TEST_F(CpuExecutorTest, ProductsAreThoseOfTheWeights) {
  auto executor = make(kernels_, 1, true);
  const BlockId block = 2;  // Q8_0 and Q8_0
  ASSERT_TRUE(executor->prepare(block).ok());
  const Slice slice = model_.program.steps[block][0];
  const std::vector<float> got = outputs(*executor, block, 1);
  Matrix<float> x = executor->input(slice);
  size_t row_of_output = 0;
  for (const Piece& piece : model_.program.blocks[block].pieces) {
    const StoredTensor& t = model_.program.tensors[piece.tensor];
    ASSERT_EQ(t.type, Type::Q8_0);
    for (uint32_t r = piece.row_begin; r < piece.row_end; ++r, ++row_of_output) {
      std::vector<float> weights(t.cols);
      type_info(t.type).dequantize(model_.bytes.data() + t.stored_offset(0) + r * row_bytes(t.type, t.cols),
                                   weights.data(), t.cols);
      double want = 0, size = 0;
      for (size_t c = 0; c < t.cols; ++c) {
        want += static_cast<double>(weights[c]) * static_cast<double>(x.row(0)[c]);
        size += std::abs(static_cast<double>(weights[c]) * static_cast<double>(x.row(0)[c]));
      }
      if (!std::isfinite(want)) continue;  // random scales may be infinite
      EXPECT_NEAR(static_cast<double>(got[row_of_output]), want, 1e-5 * size + 1e-30);
    }
  }
  EXPECT_EQ(row_of_output, got.size());
}

TEST_F(CpuExecutorTest, TheAccountHoldsAndIsCloseToTheWeights) {
  if (test::kSanitized) GTEST_SKIP() << "a sanitizer changes what is charged";
  model_ = test::ModelBuilder(Layout::rows).build(path_, 4, 400);  // a few MiB each
  for (BlockId b = 0; b < model_.program.blocks.size(); ++b) {
    model_.program.steps.push_back({{b, 0, static_cast<uint32_t>(model_.program.blocks[b].pieces.size())}});
  }
  auto executor = make(kernels_, 1);
  for (BlockId b = 0; b < model_.program.blocks.size(); ++b) {
    const uint64_t needs = executor->needs(b);
    const MemoryState before = memory_state();
    ASSERT_TRUE(executor->prepare(b).ok());
    const MemoryState after = memory_state();
    constexpr int64_t kHeap = 2 * kMiB;  // lists that came and went, and shares of libraries as programs come and go
    EXPECT_LE(growth(before.charge(), after.charge()), static_cast<int64_t>(needs) + kHeap);
    const Lifecycle& cost = executor->lifecycle(b);
    EXPECT_EQ(cost.weight_bytes, model_.program.blocks[b].memory_bytes);
    EXPECT_EQ(cost.resident_bytes(), needs);
    EXPECT_GT(cost.load_s, 0);
  }
}

TEST_F(CpuExecutorTest, ReleaseGivesEverythingBack) {
  auto executor = make(kernels_);
  auto walk = [&] {
    for (BlockId b = 0; b < model_.program.blocks.size(); ++b) ASSERT_TRUE(executor->prepare(b).ok());
    for (BlockId b = 0; b < model_.program.blocks.size(); ++b) {
      EXPECT_TRUE(executor->prepared(b));
      executor->release(b);
      executor->release(b);  // twice does no harm
      EXPECT_FALSE(executor->prepared(b));
    }
  };
  walk();  // what the process keeps for good, it has now
  const MemoryState before = memory_state();
  walk();
  EXPECT_EQ(memory_state().mappings, before.mappings);
}

TEST_F(CpuExecutorTest, AFailedPrepareLeavesNothingAndMayBeTriedAgain) {
  for (int first_failure : {0, 1, 2}) {
    test::FaultySyscalls calls;
    calls.armed = false;
    auto executor = make(kernels_, 1, false, &calls);
    ASSERT_TRUE(executor->prepare(0).ok());
    const MemoryState before = memory_state();
    calls.fault = [&](int64_t got, int call) -> int64_t { return call >= first_failure ? -EIO : got; };
    calls.armed = true;
    auto failed = executor->prepare(1);
    if (failed.ok()) continue;  // fewer reads than that
    EXPECT_EQ(failed.error().code, ErrorCode::io);
    EXPECT_FALSE(executor->prepared(1));
    EXPECT_LE(memory_state().mappings, before.mappings + 1) << "at most what the heap took for the message";
    calls.armed = false;
    EXPECT_TRUE(executor->prepare(1).ok());
  }
}

TEST_F(CpuExecutorTest, AMissingFileIsBadInput) {
  model_.program.files = {folder_ / "absent"};
  auto executor = CpuExecutor::create({.program = &model_.program, .pool = &pool_, .kernels = &kernels_});
  ASSERT_FALSE(executor.ok());
  EXPECT_EQ(executor.error().code, ErrorCode::bad_input);
}

}  // namespace
}  // namespace ridge
