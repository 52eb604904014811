#include "distill/torch/trainer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "distill/corpus.h"
#include "format/safetensors.h"
#include "tests/distill/text_file.h"

namespace ridge::distill {
namespace {

// Small enough that a step takes milliseconds.
DistillJob small_job(const test::TempFolder& folder, const std::string& name, FfnKind kind = FfnKind::reglu) {
  const std::string text = folder / "text.txt";
  if (!std::filesystem::exists(text)) test::text_file(folder, "text.txt", make_corpus({.bytes = 20'000}));
  DistillJob job;
  job.data = text;
  job.folder = folder / name;
  std::filesystem::create_directories(job.folder);
  job.shape = {.layers = 2, .dim = 16, .heads = 4, .kv_heads = 2, .ffn = 24, .context = 32, .ffn_kind = kind};
  job.optimizer = {.steps = 6, .batch = 2, .rate = 5e-3};
  job.evaluate_every = 4;
  job.validation_tokens = 256;
  job.engine.threads = job.threads = 2;
  return job;
}

std::unique_ptr<Trainer> opened(const DistillJob& job) {
  auto trainer = Trainer::open(job);
  EXPECT_TRUE(trainer.ok()) << trainer.error().message;
  return trainer.ok() ? std::move(trainer).value() : nullptr;
}

void advance_by(Trainer& trainer, int steps) {
  for (int i = 0; i < steps; ++i) {
    const auto done = trainer.advance();
    ASSERT_TRUE(done.ok()) << done.error().message;
  }
}

// A teacher of another width, as a checkpoint.
std::string trained_teacher(const test::TempFolder& folder) {
  DistillJob job = small_job(folder, "teacher", FfnKind::swiglu);
  job.shape.dim = 24;
  const auto trainer = opened(job);
  advance_by(*trainer, 3);
  EXPECT_TRUE(trainer->save().ok());
  EXPECT_TRUE(trainer->export_files().ok());
  return checkpoint_path(job.folder);
}

void expect_equal_files(const std::string& a, const std::string& b) {
  const auto one = test::read_file(a);
  EXPECT_FALSE(one.empty());
  EXPECT_TRUE(one == test::read_file(b)) << a << " and " << b << " differ";
}

TEST(Trainer, ResumesBitForBit) {
  test::TempFolder folder;
  const std::string teacher = trained_teacher(folder);
  const std::string rationales = test::text_file(folder, "r.jsonl", make_rationales({.items = 40}));
  const auto job_in = [&](const std::string& name) {
    DistillJob job = small_job(folder, name);
    job.teacher = teacher;
    job.shape.context = 32;
    job.shape.exit_layer = 1;
    job.losses = {.kd = 0.5, .divergence = Divergence::skew_forward, .hidden = 0.2, .l1 = 0.3};
    job.on_policy = 0.4;
    job.on_policy_tokens = 3;
    return job;
  };
  const auto whole = opened(job_in("whole"));
  advance_by(*whole, 6);
  ASSERT_TRUE(whole->save().ok());

  DistillJob job = job_in("halves");
  {
    const auto first = opened(job);
    advance_by(*first, 3);
    ASSERT_TRUE(first->save().ok());
  }
  EXPECT_FALSE(Trainer::open(job).ok());  // it would begin anew over what is there
  job.resume = true;
  const auto second = opened(job);
  ASSERT_EQ(second->step(), 3u);
  advance_by(*second, 3);
  ASSERT_TRUE(second->save().ok());
  expect_equal_files(checkpoint_path(folder / "whole"), checkpoint_path(folder / "halves"));

  job.losses.l1 = 0.4;
  const auto other = Trainer::open(job);
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code, ErrorCode::bad_input);
  EXPECT_NE(other.error().message.find("other settings"), std::string::npos) << other.error().message;
}

class ExportedStudent : public testing::TestWithParam<FfnKind> {};

// Largest difference between the trainer's logits and the engine's.
double largest_difference(const Student& student, const std::string& gguf, const std::vector<TokenId>& ids) {
  auto engine =
      Engine::open({.path = gguf, .context = 32, .threads = 2, .numerics = Numerics::exact, .logits_rows = 8});
  EXPECT_TRUE(engine.ok()) << engine.error().message;
  if (!engine.ok()) return INFINITY;
  torch::NoGradGuard off;
  const auto logits =
      student.forward(batch_of({ids}, static_cast<uint32_t>(ids.size() - 1)).inputs).logits.contiguous();
  const float* want = logits.data_ptr<float>();
  double most = 0;
  const std::vector<TokenId> read(ids.begin(), ids.end() - 1);
  EXPECT_TRUE(engine.value()
                  ->evaluate_all(read,
                                 [&](std::span<const float> row) -> Result<void> {
                                   for (const float x : row) most = std::max<double>(most, std::abs(x - *want++));
                                   return {};
                                 })
                  .ok());
  return most;
}

TEST_P(ExportedStudent, GivesTheTrainersLogits) {
  test::TempFolder folder;
  for (const bool shared : {false, true}) {
    for (const bool tied : {true, false}) {
      DistillJob job = small_job(folder, fmt::format("{}-{}", shared, tied), GetParam());
      job.shape.shared = shared;
      job.shape.tied = tied;
      const auto trainer = opened(job);
      advance_by(*trainer, 4);
      ASSERT_TRUE(trainer->export_files().ok());
      std::vector<TokenId> ids;
      for (int i = 0; i < 31; ++i) ids.push_back((i * 37 + 11) % 257);
      EXPECT_LT(largest_difference(trainer->student(), job.folder + "/student.gguf", ids), 1e-4) << job.folder;
      EXPECT_TRUE(is_safetensors(job.folder + "/model.safetensors"));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ffn, ExportedStudent, testing::Values(FfnKind::swiglu, FfnKind::reglu, FfnKind::relu2),
                         [](const auto& kind) { return std::string(name_of(kind.param)); });

TEST(Trainer, DraftIsTheEarlyExit) {
  test::TempFolder folder;
  DistillJob job = small_job(folder, "student", FfnKind::swiglu);
  job.shape.exit_layer = 1;
  const auto trainer = opened(job);
  advance_by(*trainer, 2);
  ASSERT_TRUE(trainer->export_files().ok());
  const std::vector<TokenId> ids = {72, 101, 108, 108, 111};
  torch::NoGradGuard off;
  const auto want = trainer->student().forward(batch_of({ids}, 4).inputs, {.exit = true}).exit_logits.contiguous();
  auto engine = Engine::open({.path = job.folder + "/draft.gguf", .threads = 1, .numerics = Numerics::exact});
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  const auto got = engine.value()->evaluate(std::vector<TokenId>(ids.begin(), ids.end() - 1));
  ASSERT_TRUE(got.ok());
  for (size_t i = 0; i < 257; ++i) EXPECT_NEAR(got.value()[i], want.data_ptr<float>()[3 * 257 + i], 1e-4);
}

TEST(Trainer, AnEngineTeachesAsItsCheckpointDoes) {
  test::TempFolder folder;
  const std::string checkpoint = trained_teacher(folder);
  std::vector<double> losses;
  for (const std::string& teacher : {checkpoint, folder / "teacher/student.gguf"}) {
    DistillJob job = small_job(folder, fmt::format("student{}", losses.size()));
    job.teacher = teacher;
    job.losses.kd = 1;
    job.engine.numerics = Numerics::exact;
    const auto trainer = opened(job);
    advance_by(*trainer, 3);
    losses.push_back(trainer->last_loss());
  }
  EXPECT_NEAR(losses[0], losses[1], 1e-4);
}

TEST(Trainer, LearnsAndDistils) {
  test::TempFolder folder;
  DistillJob job = small_job(folder, "student");
  job.optimizer.steps = 60;
  job.optimizer.batch = 8;
  job.optimizer.rate = 1e-2;
  const auto trainer = opened(job);
  trainer->note_point();
  const double before = trainer->state().curve.back().held_out;
  EXPECT_NEAR(before, std::log(257), 0.5);
  advance_by(*trainer, 60);
  EXPECT_LT(trainer->state().curve.back().held_out, before - 1.5);
}

TEST(Trainer, StopsWhereTheLossIsNoNumber) {
  test::TempFolder folder;
  DistillJob job = small_job(folder, "student");
  job.checkpoint_every = 1;
  const auto trainer = opened(job);
  advance_by(*trainer, 2);
  ASSERT_TRUE(trainer->save().ok());
  const auto kept = test::read_file(checkpoint_path(job.folder));
  {
    torch::NoGradGuard off;
    trainer->student().parameters()[1].value.fill_(NAN);
  }
  const auto failed = trainer->advance();
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, ErrorCode::refused);
  EXPECT_NE(failed.error().message.find("step 3"), std::string::npos) << failed.error().message;
  EXPECT_EQ(trainer->step(), 2u);
  EXPECT_TRUE(kept == test::read_file(checkpoint_path(job.folder)));
}

TEST(Trainer, RefusesBrokenCheckpoints) {
  test::TempFolder folder;
  const std::string path = trained_teacher(folder);
  const auto good = test::read_file(path);
  for (const size_t bytes : {size_t{0}, size_t{7}, size_t{64}, good.size() / 2, good.size() - 1}) {
    test::write_file(folder / "cut.safetensors", std::span(good).first(bytes));
    EXPECT_FALSE(read_checkpoint_state(folder / "cut.safetensors").ok()) << bytes;
  }
  const auto model = read_checkpoint_state(folder / "teacher/model.safetensors");  // no checkpoint, but safetensors
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.error().code, ErrorCode::bad_input);
}

TEST(Trainer, WeightsMakeLayersLearnFaster) {
  test::TempFolder folder;
  DistillJob job = small_job(folder, "student");
  job.map = test::text_file(folder, "map.json", R"({"format": "ridge-layer-weights", "version": 1, "layers": [0, 2],
      "neurons": [{"layer": 1, "first": 0, "count": 3, "weight": 0}]})");
  job.optimizer.decay = 0;
  const auto trainer = opened(job);
  std::vector<torch::Tensor> before;
  for (const Parameter& p : trainer->student().parameters()) before.push_back(p.value.detach().clone());
  advance_by(*trainer, 1);
  for (size_t i = 0; i < before.size(); ++i) {
    const Parameter& p = trainer->student().parameters()[i];
    const bool same = torch::equal(before[i], p.value);
    if (p.value.dim() > 1) {
      EXPECT_EQ(same, p.layer == 0) << p.name;
    }
    if (p.name == "blk.1.ffn_up.weight") {
      EXPECT_TRUE(torch::equal(before[i].narrow(0, 0, 3), p.value.narrow(0, 0, 3)));
      EXPECT_FALSE(torch::equal(before[i].narrow(0, 3, 1), p.value.narrow(0, 3, 1)));
    }
  }
}

}  // namespace
}  // namespace ridge::distill
