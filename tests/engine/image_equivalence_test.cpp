// One picture, whatever the budget, the threads, the instruction set, the I/O engine and the batch; and each shortcut
// of docs/image.md against the long way.
#include <cstring>

#include "base/units.h"
#include "kernels/choose.h"
#include "model/outline.h"
#include "tests/engine/image_cases.h"

namespace ridge {
namespace {

using test::flat;

// Two branches of two images of a small latent, and noise from a generator of the test's own.
struct Case {
  ImageJob job;
  std::vector<float> latents;  // [images, floats]
};

Case small_case(uint32_t images) {
  Case c;
  c.job = {.height = 6,
           .width = 10,
           .prompts = {{.qwen = {5, 17, 250, 3}, .t5 = {7, 8, 9, 400, 1}}, {.qwen = {643}, .t5 = {1}}},
           .segments = {},
           .sigmas = {1.0f, 0.5f}};
  for (uint32_t i = 0; i < images; ++i) {
    c.job.segments.push_back({0, i});
    c.job.segments.push_back({1, i});
  }
  uint32_t state = 12345;
  for (uint32_t i = 0; i < images * 16 * 60; ++i) {
    state = state * 1664525u + 1013904223u;
    c.latents.push_back(static_cast<float>(static_cast<int32_t>(state)) * 0x1p-30f);
  }
  return c;
}

// Velocities of both sigmas, and contexts.
std::vector<float> outcome(const ImageOptions& options, const Case& c) {
  auto model = ImageModel::open(options, c.job);
  EXPECT_TRUE(model.ok()) << model.error().message;
  if (!model.ok()) return {};
  auto prepared = model.value()->prepare();
  EXPECT_TRUE(prepared.ok()) << prepared.error().message;
  const size_t floats = model.value()->latent_floats(), images = c.latents.size() / floats;
  std::vector<float> all = flat(model.value()->context(0)), v(c.job.segments.size() * floats);
  const Matrix<float> velocities(v.data(), c.job.segments.size(), floats);
  for (size_t s = 0; s < c.job.sigmas.size(); ++s) {
    auto done = model.value()->evaluate(s, Matrix<const float>(c.latents.data(), images, floats), velocities);
    EXPECT_TRUE(done.ok()) << done.error().message;
    all.insert(all.end(), v.begin(), v.end());
  }
  for (float x : all) EXPECT_TRUE(std::isfinite(x));
  return all;
}

bool same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

class ImageEquivalence : public ::testing::Test {
 protected:
  void SetUp() override { RIDGE_SKIP_WITHOUT(test::tiny_options().model, "needs ../shared"); }
};

TEST_F(ImageEquivalence, SameBytesOnEveryInstructionSet) {
  const Case c = small_case(1);
  const std::vector<float> want = outcome(test::tiny_options(), c);
  for (const char* name : {"scalar", "avx2", "avx512", "neon"}) {
    auto isa = parse_isa(name);
    if (!isa.ok()) continue;
    ImageOptions options = test::tiny_options();
    options.isa = isa.value();
    if (!choose_kernels({.isa = options.isa}).ok()) continue;
    EXPECT_TRUE(same(outcome(options, c), want)) << name;
  }
}

TEST_F(ImageEquivalence, SameBytesForAllThreadsAndIoEnginesAndPins) {
  const Case c = small_case(1);
  const std::vector<float> want = outcome(test::tiny_options(), c);
  for (int threads : {1, 3, 7}) {
    ImageOptions options = test::tiny_options();
    options.threads = threads;
    EXPECT_TRUE(same(outcome(options, c), want)) << threads;
  }
  for (IoKind io : {IoKind::automatic, IoKind::threads}) {
    for (uint64_t pinned : {uint64_t{0}, 300 * kKiB, uint64_t{1} << 40}) {
      ImageOptions options = test::tiny_options();
      options.io = io;
      options.most_pinned = pinned;
      EXPECT_TRUE(same(outcome(options, c), want)) << pinned;
    }
  }
}

TEST_F(ImageEquivalence, SameBytesWhereEachBlockIsLoadedRunAndReleased) {
  const Case c = small_case(1);
  const std::vector<float> want = outcome(test::tiny_options(), c);
  PassTimes times;
  ImageOptions options = test::tiny_options();
  options.load_run_release = true;
  options.times = &times;
  EXPECT_TRUE(same(outcome(options, c), want));
  ASSERT_EQ(times.passes().size(), c.job.sigmas.size());
  for (const PassCost& pass : times.passes()) {
    for (const PartCost& kind : pass) {
      EXPECT_GT(kind.load.count(), 0);
      EXPECT_GT(kind.init.count(), 0);
      EXPECT_GT(kind.execute.count(), 0);
      EXPECT_GT(kind.release.count(), 0);
    }
  }
}

TEST_F(ImageEquivalence, EachImageOfABatchIsItsSingleRun) {
  const Case both = small_case(2);
  const std::vector<float> batch = outcome(test::tiny_options(), both);
  for (uint32_t image = 0; image < 2; ++image) {
    Case one = small_case(1);
    const size_t floats = one.latents.size(), context = 5 * 64;
    one.latents.assign(both.latents.begin() + image * static_cast<long>(floats),
                       both.latents.begin() + (image + 1) * static_cast<long>(floats));
    const std::vector<float> single = outcome(test::tiny_options(), one);
    for (size_t sigma = 0; sigma < 2; ++sigma) {
      const float* got = batch.data() + context + (4 * sigma + 2 * image) * floats;
      const float* want = single.data() + context + 2 * sigma * floats;
      EXPECT_EQ(std::memcmp(got, want, 2 * floats * sizeof(float)), 0) << image << ", sigma " << sigma;
    }
  }
}

TEST_F(ImageEquivalence, ThePlanHasThreeBlocksALayer) {
  auto model = ImageModel::open(test::tiny_options(), small_case(1).job);
  ASSERT_TRUE(model.ok()) << model.error().message;
  const Program& program = model.value()->denoising().plan().program;
  EXPECT_EQ(program.blocks.size(), 3u * model.value()->shape().layers + 2);
  EXPECT_EQ(program.visits.size(), program.blocks.size());
  for (const Block& b : program.blocks) {
    for (const Piece& p : b.pieces) {
      const std::string& name = program.tensors[p.tensor].name;
      EXPECT_EQ(name.find("adaln"), std::string::npos) << name;
      EXPECT_EQ(name.find("cross_attn.k_proj"), std::string::npos) << name;
      EXPECT_EQ(name.find("llm_adapter"), std::string::npos) << name;
    }
  }
}

TEST_F(ImageEquivalence, TooSmallABudgetIsRefusedWithATable) {
  ImageOptions options = test::tiny_options();
  options.memory = 2 * kMiB;
  auto model = ImageModel::open(options, small_case(1).job);
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.error().code, ErrorCode::does_not_fit);
  EXPECT_NE(model.error().message.find("stream slots"), std::string::npos) << model.error().message;
}

TEST_F(ImageEquivalence, WrongJobsAreRefused) {
  auto refused = [](ImageJob job, ErrorCode code) {
    auto model = ImageModel::open(test::tiny_options(), job);
    ASSERT_FALSE(model.ok());
    EXPECT_EQ(model.error().code, code) << model.error().message;
  };
  ImageJob odd = small_case(1).job;
  odd.width = 9;
  refused(odd, ErrorCode::usage);
  ImageJob foreign = small_case(1).job;
  foreign.prompts[0].qwen[1] = 1000;
  refused(foreign, ErrorCode::bad_input);
  ImageJob negative = small_case(1).job;
  negative.prompts[0].t5[0] = -1;
  refused(negative, ErrorCode::bad_input);
  ImageJob empty = small_case(1).job;
  empty.prompts[1].t5.clear();
  refused(empty, ErrorCode::bad_input);
  ImageJob longest = small_case(1).job;
  longest.prompts[0].qwen.assign(513, 1);
  refused(longest, ErrorCode::bad_input);
}

}  // namespace
}  // namespace ridge
