// Adapters: the engine runs what the trainer trained; gradients; text that is learned.
#include "distill/torch/tuner.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "distill/corpus.h"
#include "distill/model_files.h"
#include "distill/torch/losses.h"
#include "engine/engine.h"
#include "machine/memory_limits.h"
#include "tests/distill/text_file.h"

namespace ridge::distill {
namespace {

// A model with random weights, as `ridge distill` writes them.
std::string tunable_model(const test::TempFolder& folder, FfnKind kind) {
  const Vocabulary words = byte_vocabulary().value();
  StudentShape shape{.vocabulary = static_cast<uint32_t>(words.tokenizer->size()),
                     .layers = 2,
                     .dim = 32,
                     .heads = 4,
                     .kv_heads = 2,
                     .ffn = 48,
                     .context = 64,
                     .ffn_kind = kind,
                     .tied = kind == FfnKind::swiglu};
  Student student(shape);
  student.randomise(5);
  const std::string path = folder / "model.gguf";
  EXPECT_TRUE(write_gguf(shape, words.keys, student.named(), {.name = "tunable"}, path).ok());
  return path;
}

TuneJob tune_job(const test::TempFolder& folder, FfnKind kind = FfnKind::swiglu) {
  TuneJob job{.model = tunable_model(folder, kind), .adapter = folder / "adapter.gguf", .rank = 4, .context = 32};
  job.data = test::text_file(folder, "text.txt", make_corpus({.bytes = 20'000}));
  job.optimizer.steps = 20;
  job.optimizer.batch = 2;
  job.optimizer.rate = 1e-2;
  job.validation_tokens = 256;
  job.evaluate_every = 10;
  job.threads = 2;
  return job;
}

std::unique_ptr<Tuner> tuner_of(const TuneJob& job) {
  auto tuner = Tuner::open(job);
  EXPECT_TRUE(tuner.ok()) << tuner.error().message;
  return tuner.ok() ? std::move(tuner).value() : nullptr;
}

class TunerOf : public testing::TestWithParam<FfnKind> {};

TEST_P(TunerOf, TheEngineGivesTheTrainersLogits) {
  test::TempFolder folder;
  const TuneJob job = tune_job(folder, GetParam());
  const auto tuner = tuner_of(job);
  ASSERT_TRUE(tuner);
  std::vector<TokenId> ids;
  for (int i = 0; i < 24; ++i) ids.push_back((i * 37 + 11) % 256);
  const auto input = torch::tensor(std::vector<int64_t>(ids.begin(), ids.end())).unsqueeze(0);
  torch::NoGradGuard off;
  const auto before = tuner->model().forward(input)[0].clone();
  {
    torch::AutoGradMode on(true);
    while (tuner->step() < job.optimizer.steps) ASSERT_TRUE(tuner->advance().ok());
  }
  EXPECT_LT(tuner->state().curve.back().held_out, tuner->state().curve.front().held_out - 0.05);
  ASSERT_TRUE(tuner->write_adapter().ok());
  const auto after = tuner->model().forward(input)[0];
  EXPECT_GT((after - before).abs().max().item<double>(), 0.1);
  for (const bool adapted : {false, true}) {
    EngineOptions options{.path = job.model, .threads = 2, .numerics = Numerics::exact, .logits_rows = 8};
    if (adapted) options.adapters = {{.path = job.adapter}};
    auto engine = Engine::open(options);
    ASSERT_TRUE(engine.ok()) << engine.error().message;
    const auto& want = adapted ? after : before;
    int64_t token = 0;
    const auto done = engine.value()->evaluate_all(ids, [&](std::span<const float> row) -> Result<void> {
      const auto got = torch::from_blob(const_cast<float*>(row.data()), {static_cast<int64_t>(row.size())});
      EXPECT_LT((got - want[token++]).abs().max().item<double>(), 1e-4) << token << (adapted ? " adapted" : "");
      return {};
    });
    ASSERT_TRUE(done.ok());
  }
}

INSTANTIATE_TEST_SUITE_P(Ffn, TunerOf, testing::Values(FfnKind::swiglu, FfnKind::reglu, FfnKind::relu2),
                         [](const auto& kind) { return std::string(name_of(kind.param)); });

TEST(Tuner, GradientsAreThoseOfDifferences) {
  test::TempFolder folder;
  const auto tuner = tuner_of(tune_job(folder));
  ASSERT_TRUE(tuner);
  FrozenModel& model = tuner->model();
  const auto input = torch::tensor({{3, 99, 120, 41, 7, 200}}, torch::kInt64);
  const auto loss = [&] { return model.forward(input).log_softmax(-1).select(-1, 65).sum() * -0.1; };
  {
    torch::NoGradGuard off;  // both matrices of a pair have a slope only where the other is not zero
    for (Parameter& p : model.parameters()) p.value.add_(torch::ones_like(p.value), 0.02);
  }
  loss().backward();
  torch::NoGradGuard off;
  for (Parameter& p : model.parameters()) {
    constexpr float kStep = 1e-2f;
    float* value = p.value.data_ptr<float>();
    const float slope = p.value.grad().contiguous().data_ptr<float>()[0], kept = *value;
    *value = kept + kStep;
    const double above = loss().item<double>();
    *value = kept - kStep;
    const double below = loss().item<double>();
    *value = kept;
    EXPECT_NEAR((above - below) / (2 * kStep), slope, 2e-3 + 2e-2 * std::abs(slope)) << p.name;
  }
}

// Running the blocks again on the way back changes neither loss nor gradient.
TEST(Tuner, LearnsAsTheWholeModelWould) {
  test::TempFolder folder;
  const auto tuner = tuner_of(tune_job(folder));
  ASSERT_TRUE(tuner);
  FrozenModel& model = tuner->model();
  const auto ids = (torch::arange(3 * 30) * 37 % 256).reshape({3, 30}), targets = (ids * 5 + 1) % 256;
  {
    torch::NoGradGuard off;
    for (Parameter& p : model.parameters()) p.value.add_(torch::ones_like(p.value), 0.02);
  }
  const auto whole = cross_entropy(model.forward(ids).flatten(0, 1), targets.flatten(), torch::ones({90}));
  whole.backward();
  std::vector<torch::Tensor> want;
  for (Parameter& p : model.parameters()) {
    want.push_back(p.value.grad().clone());
    p.value.mutable_grad().zero_();
  }
  EXPECT_NEAR(model.learn(ids, targets), whole.item<double>(), 1e-5);
  EXPECT_NEAR(model.loss(ids, targets), whole.item<double>(), 1e-5);
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_TRUE(torch::allclose(model.parameters()[i].value.grad(), want[i], 1e-3, 1e-6)) << model.parameters()[i].name;
    EXPECT_GT(want[i].abs().max().item<double>(), 1e-5);
  }
}

TEST(Tuner, ResumesBitForBit) {
  test::TempFolder folder;
  TuneJob job = tune_job(folder);
  job.optimizer.steps = 6;
  const auto whole = tuner_of(job);
  ASSERT_TRUE(whole);
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(whole->advance().ok());
  {
    const auto first = tuner_of(job);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(first->advance().ok());
    ASSERT_TRUE(first->save().ok());
  }
  EXPECT_FALSE(Tuner::open(job).ok());  // there is something to go on with
  job.resume = true;
  const auto second = tuner_of(job);
  ASSERT_TRUE(second);
  ASSERT_EQ(second->step(), 3u);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(second->advance().ok());
  for (size_t i = 0; i < whole->model().parameters().size(); ++i) {
    EXPECT_TRUE(torch::equal(whole->model().parameters()[i].value, second->model().parameters()[i].value))
        << whole->model().parameters()[i].name;
  }
  job.rank = 5;
  const auto other = Tuner::open(job);
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.error().message.find("other settings"), std::string::npos) << other.error().message;
}

TEST(Tuner, RefusesWhatDoesNotFitBeforeItReads) {
  test::TempFolder folder;
  TuneJob job = tune_job(folder);
  job.memory = 8 << 20;
  const uint64_t before = process_memory().resident;
  const auto tuner = Tuner::open(job);
  ASSERT_FALSE(tuner.ok());
  EXPECT_EQ(tuner.error().code, ErrorCode::does_not_fit);
  for (const char* part : {"adapters, gradients, moments", "--memory", "--batch 1"}) {
    EXPECT_NE(tuner.error().message.find(part), std::string::npos) << tuner.error().message;
  }
  EXPECT_LT(process_memory().resident, before + (16 << 20));
  EXPECT_FALSE(std::filesystem::exists(job.adapter));
}

TEST(Tuner, RefusesOtherArchitecturesAndTensors) {
  test::TempFolder folder;
  TuneJob job = tune_job(folder, FfnKind::relu2);
  job.targets = {"ffn_gate"};
  const auto none = Tuner::open(job);
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().message.find("none of the matrices"), std::string::npos) << none.error().message;
}

// A product with a frozen matrix of the file's type is that with its floats, forwards and backwards.
TEST(Tuner, FrozenMatricesAreTheirFloats) {
  FrozenMatrix m{.type = Type::F16, .rows = 3, .cols = 2, .bytes = {}};
  for (const int half : {0x3C00, 0x4000, 0xBC00, 0x3800, 0x0000, 0x4200}) {  // 1, 2, −1, ½, 0, 3
    m.bytes.push_back(static_cast<uint8_t>(half & 0xFF));
    m.bytes.push_back(static_cast<uint8_t>(half >> 8));
  }
  const auto want = torch::tensor({{1.0f, 2.0f}, {-1.0f, 0.5f}, {0.0f, 3.0f}});
  EXPECT_TRUE(torch::equal(m.floats(), want));
  EXPECT_TRUE(torch::equal(m.rows_of(torch::tensor({2, 0}, torch::kInt64)), torch::stack({want[2], want[0]})));
}

}  // namespace
}  // namespace ridge::distill
