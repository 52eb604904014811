#include "distill/torch/run_steps.h"

#include <fmt/format.h>
#include <malloc.h>

#include "base/progress.h"
#include "base/units.h"
#include "machine/cpu.h"

namespace ridge::distill {
namespace {

Result<void> keep(Training& training, const TrainHooks& hooks) {
  RIDGE_TRY(training.save());
  return hooks.curve ? hooks.curve(training.state().curve) : Result<void>();
}

// The message of whoever could not be given memory, libtorch's or our own.
bool is_about_memory(const std::string& what) { return what.find("alloc") != std::string::npos; }

}  // namespace

void set_up_torch(int threads) {
  at::set_num_threads(threads > 0 ? threads : static_cast<int>(usable_cpus().size()));
  // Activations are made and dropped at every step: without this each would be mapped and cleared anew by the kernel.
  ::mallopt(M_MMAP_THRESHOLD, 1 << 30);
  ::mallopt(M_TRIM_THRESHOLD, INT32_MAX);
}

Result<void> run_steps(Training& training, const StepsToRun& run, const TrainHooks& hooks) {
  Progress bar("training", run.steps, ProgressUnit::items);
  bar.advance(training.step());
  while (training.step() < run.steps) {
    if (hooks.interrupted != nullptr && *hooks.interrupted) {
      RIDGE_TRY(keep(training, hooks));
      return io_error(fmt::format("stopped after step {} of {}: the same command with --resume goes on",
                                  training.step(), run.steps));
    }
    RIDGE_TRY(training.advance());
    bar.annotate(fmt::format("loss {:.4f}", training.last_loss()));
    bar.advance(1);
    if (training.step() % run.checkpoint_every == 0) RIDGE_TRY(keep(training, hooks));
  }
  return keep(training, hooks);
}

Error error_of(const c10::Error& e, const std::string& give_less) {
  const std::string what = e.what_without_backtrace();
  if (!is_about_memory(what)) return Error{ErrorCode::bug, "bug: libtorch: " + what};
  return does_not_fit("out of memory while training (" + what.substr(0, what.find('\n')) + "): give " + give_less);
}

}  // namespace ridge::distill
