// train(): the loop around Trainer, and the border that no exception of libtorch crosses.
#include <fmt/format.h>
#include <malloc.h>

#include <chrono>
#include <filesystem>

#include "base/progress.h"
#include "base/units.h"
#include "distill/torch/trainer.h"
#include "machine/cpu.h"

namespace ridge::distill {
namespace {

using Clock = std::chrono::steady_clock;

void set_up_torch(const DistillJob& job) {
  at::set_num_threads(job.threads > 0 ? job.threads : static_cast<int>(usable_cpus().size()));
  // Activations are made and dropped at every step: without this each would be mapped and cleared anew by the kernel.
  ::mallopt(M_MMAP_THRESHOLD, 1 << 30);
  ::mallopt(M_TRIM_THRESHOLD, INT32_MAX);
}

Result<void> keep(Trainer& trainer, const TrainHooks& hooks) {
  RIDGE_TRY(trainer.save());
  return hooks.curve ? hooks.curve(trainer.state().curve) : Result<void>();
}

// Steps from `done` on, of all; a checkpoint now and then, at the end, and when interrupted.
Result<void> run_steps(Trainer& trainer, const DistillJob& job, const TrainHooks& hooks) {
  Progress bar("training", job.optimizer.steps, ProgressUnit::items);
  bar.advance(trainer.step());
  while (trainer.step() < job.optimizer.steps) {
    if (hooks.interrupted != nullptr && *hooks.interrupted) {
      RIDGE_TRY(keep(trainer, hooks));
      return io_error(fmt::format("stopped after step {} of {}: the same command with --resume goes on", trainer.step(),
                                  job.optimizer.steps));
    }
    RIDGE_TRY(trainer.advance());
    bar.annotate(fmt::format("loss {:.4f}", trainer.last_loss()));
    bar.advance(1);
    if (trainer.step() % job.checkpoint_every == 0) RIDGE_TRY(keep(trainer, hooks));
  }
  return keep(trainer, hooks);
}

Result<TrainReport> train_student(const DistillJob& job, const TrainHooks& hooks) {
  std::error_code error;
  std::filesystem::create_directories(job.folder, error);
  if (error) return io_error(fmt::format("{}: the folder cannot be made ({})", job.folder, error.message()));
  set_up_torch(job);
  auto trainer = RIDGE_TRY(Trainer::open(job));
  const auto begin = Clock::now();
  if (trainer->step() < job.optimizer.steps) RIDGE_TRY(run_steps(*trainer, job, hooks));
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  RIDGE_TRY(trainer->export_files());
  TrainReport report = RIDGE_TRY(trainer->report());
  report.seconds = seconds;
  return report;
}

}  // namespace

Result<TrainReport> train(const DistillJob& job, const TrainHooks& hooks) {
  try {
    return train_student(job, hooks);
  } catch (const c10::Error& e) {
    const std::string what = e.what_without_backtrace();
    if (what.find("alloc") == std::string::npos) return Error{ErrorCode::bug, "bug: libtorch: " + what};
    return does_not_fit("out of memory while training (" + what.substr(0, what.find('\n')) +
                        "): give a smaller student, --batch or --context");
  } catch (const std::bad_alloc&) {
    return does_not_fit("out of memory while training: give a smaller student, --batch or --context");
  }
}

}  // namespace ridge::distill
