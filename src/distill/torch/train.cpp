// train(): a student from the job to the files.
#include <fmt/format.h>

#include <chrono>
#include <filesystem>

#include "distill/torch/run_steps.h"
#include "distill/torch/trainer.h"

namespace ridge::distill {
namespace {

using Clock = std::chrono::steady_clock;

Result<TrainReport> train_student(const DistillJob& job, const TrainHooks& hooks) {
  std::error_code error;
  std::filesystem::create_directories(job.folder, error);
  if (error) return io_error(fmt::format("{}: the folder cannot be made ({})", job.folder, error.message()));
  set_up_torch(job.threads);
  auto trainer = RIDGE_TRY(Trainer::open(job));
  const auto begin = Clock::now();
  if (trainer->step() < job.optimizer.steps) {
    RIDGE_TRY(run_steps(*trainer, {.steps = job.optimizer.steps, .checkpoint_every = job.checkpoint_every}, hooks));
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  RIDGE_TRY(trainer->export_files());
  if (!job.fisher.empty()) RIDGE_TRY(trainer->write_fisher());
  TrainReport report = RIDGE_TRY(trainer->report());
  report.seconds = seconds;
  return report;
}

}  // namespace

Result<TrainReport> train(const DistillJob& job, const TrainHooks& hooks) {
  return guarded("a smaller student, --batch or --context", [&] { return train_student(job, hooks); });
}

}  // namespace ridge::distill
